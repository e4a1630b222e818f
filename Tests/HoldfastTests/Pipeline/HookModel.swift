// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastSemantics
import HoldfastTesting

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Hooks and a transport of which each does one thing, and what the four laws say that comes of it.
struct HookModel: Sendable, CustomStringConvertible {
    enum Schedule: CaseIterable, Sendable { case absent, passes, edits, answers, throwsAfterEdit, cancels }
    enum Success: CaseIterable, Sendable { case absent, passes, edits, refuses }
    enum Failure: CaseIterable, Sendable { case passes, answers }
    enum Sending: CaseIterable, Sendable { case answers, fails, cancels }

    /// What a hook does at each moment; its name is its place.
    struct Script: Sendable {
        let name: String
        let schedule: Schedule
        let success: Success
        let failure: Failure
        let scope: HookScope
        let isSynchronous: Bool
    }

    /// How a call ended: by whom, and with which path.
    enum Outcome: Equatable, Sendable {
        case response(String, path: String)
        case error(String)
    }

    let scripts: [Script]
    let sending: Sending

    init(using random: inout SeededGenerator) {
        let count = Int.random(in: 0...5, using: &random)
        // Whoever passes on lets more be seen of those below.
        func mostly<Value>(_ usual: [Value], _ all: [Value]) -> Value {
            let values = Int.random(in: 0..<6, using: &random) == 0 ? all : usual
            return values[Int.random(in: 0..<values.count, using: &random)]
        }
        let firstMessageHook = Int.random(in: 0...count, using: &random)
        scripts = (0..<count).map { place in
            Script(
                name: "\(place)",
                schedule: mostly([.absent, .passes, .edits, .edits], Schedule.allCases),
                success: mostly([.absent, .passes, .edits], Success.allCases),
                failure: mostly([.passes], Failure.allCases),
                scope: place < firstMessageHook ? .call : .message,
                isSynchronous: Bool.random(using: &random)
            )
        }
        sending = mostly([.answers, .answers, .fails], Sending.allCases)
    }

    var description: String {
        scripts.map { script in
            "\(script.schedule)/\(script.success)/\(script.failure)/\(script.scope)"
                + (script.isSynchronous ? "/synchronous" : "")
        }.joined(separator: ", ") + ": \(sending)"
    }

    /// What is written down of a call, and how it ends.
    var expected: (log: [String], outcome: Outcome) {
        var (log, path) = ([String](), "/a")
        var left: [String] = []
        var outcome: Outcome?
        for script in scripts {
            if script.schedule != .absent { log.append("\(script.name).schedule \(path)") }
            if [.edits, .answers, .throwsAfterEdit].contains(script.schedule) { path += script.name }
            switch script.schedule {
            case .answers: outcome = .response(script.name, path: path)
            case .throwsAfterEdit: outcome = .error(script.name)
            case .cancels: outcome = .error("cancelled")
            case .absent, .passes, .edits: left.append(path)
            }
            if outcome != nil { break }
        }
        let sent = outcome == nil ? path : nil
        if sent != nil {
            log.append("send \(path)")
            outcome =
                switch sending {
                case .answers: .response("origin", path: path)
                case .fails: .error("origin")
                case .cancels: .error("cancelled")
                }
        }
        for (script, own) in zip(scripts, left).reversed() {
            switch outcome {
            case .response(let maker, let url):
                if script.success == .absent { continue }
                log.append("\(script.name).success \(maker) \(sent ?? own)")
                if script.success == .edits { outcome = .response(maker + script.name, path: url) }
                if script.success == .refuses { outcome = .error(script.name) }
            case .error("cancelled"):
                log.append("\(script.name).cancel \(sent ?? own)")
            case .error(let error):
                log.append("\(script.name).failure \(error) \(sent ?? own)")
                if script.failure == .answers { outcome = .response(script.name, path: own) }
            case nil: break
            }
        }
        return (log, outcome ?? .error("none"))
    }

    func hooks(_ log: HookLog) -> [any ServiceHook] {
        scripts.map { script in
            let acts = Acts(script: script, log: log)
            return switch (script.schedule == .absent, script.success == .absent, script.isSynchronous) {
            case (true, true, false): NeitherHook(acts: acts)
            case (true, false, false): EndingHook(acts: acts)
            case (false, true, false): SchedulingHook(acts: acts)
            case (false, false, false): BothHook(acts: acts)
            case (true, true, true): SynchronousNeitherHook(acts: acts)
            case (true, false, true): SynchronousEndingHook(acts: acts)
            case (false, true, true): SynchronousSchedulingHook(acts: acts)
            case (false, false, true): SynchronousBothHook(acts: acts)
            }
        }
    }
}

/// What hooks of a model do, whatever of it their type has.
private struct Acts: Sendable {
    let script: HookModel.Script
    let log: HookLog

    func schedule(_ request: inout URLRequest) throws -> Response? {
        log.add("\(script.name).schedule \(request.url?.path ?? "")")
        if [.edits, .answers, .throwsAfterEdit].contains(script.schedule) {
            request.url = request.url.flatMap { URL(string: $0.absoluteString + script.name) }
        }
        switch script.schedule {
        case .answers: return Response(status: .ok, fields: ["Maker": script.name])
        case .throwsAfterEdit: throw Refused(reason: script.name)
        case .cancels: throw CancellationError()
        case .absent, .passes, .edits: return nil
        }
    }

    func success(_ response: inout Response, _ request: URLRequest) throws {
        let maker = response.fields["Maker"] ?? ""
        log.add("\(script.name).success \(maker) \(request.url?.path ?? "")")
        if script.success == .edits { response.fields["Maker"] = maker + script.name }
        if script.success == .refuses { throw Refused(reason: script.name) }
    }

    func failure(_ error: any Error, _ request: URLRequest) -> Response? {
        let reason = (error as? Refused)?.reason ?? "origin"
        log.add("\(script.name).failure \(reason) \(request.url?.path ?? "")")
        return script.failure == .answers ? Response(status: .ok, fields: ["Maker": script.name]) : nil
    }

    func cancel(_ request: URLRequest) {
        log.add("\(script.name).cancel \(request.url?.path ?? "")")
    }
}

private protocol ActingHook: ServiceHook {
    var acts: Acts { get }
}

extension ActingHook {
    var scope: HookScope { acts.script.scope }

    func onFailure(_ error: any Error, _ request: URLRequest, _ context: inout CallContext) async -> Response? {
        acts.failure(error, request)
    }

    func onCancel(_ request: URLRequest, _ context: CallContext) { acts.cancel(request) }
}

private struct NeitherHook: ActingHook {
    let acts: Acts
}

private struct SchedulingHook: ActingHook {
    let acts: Acts

    func onSchedule(_ request: inout URLRequest, _ context: inout CallContext) async throws -> Response? {
        try acts.schedule(&request)
    }
}

private struct EndingHook: ActingHook {
    let acts: Acts

    func onSuccess(_ response: inout Response, _ request: URLRequest, _ context: inout CallContext) async throws {
        try acts.success(&response, request)
    }
}

private struct BothHook: ActingHook {
    let acts: Acts

    func onSchedule(_ request: inout URLRequest, _ context: inout CallContext) async throws -> Response? {
        try acts.schedule(&request)
    }

    func onSuccess(_ response: inout Response, _ request: URLRequest, _ context: inout CallContext) async throws {
        try acts.success(&response, request)
    }
}

private struct SynchronousNeitherHook: ActingHook, SynchronousServiceHook {
    let acts: Acts
}

private struct SynchronousSchedulingHook: ActingHook, SynchronousServiceHook {
    let acts: Acts

    func scheduled(_ request: inout URLRequest, context: inout CallContext) throws -> Response? {
        try acts.schedule(&request)
    }
}

private struct SynchronousEndingHook: ActingHook, SynchronousServiceHook {
    let acts: Acts

    func succeeded(_ response: inout Response, to request: URLRequest, context: inout CallContext) throws {
        try acts.success(&response, request)
    }
}

private struct SynchronousBothHook: ActingHook, SynchronousServiceHook {
    let acts: Acts

    func scheduled(_ request: inout URLRequest, context: inout CallContext) throws -> Response? {
        try acts.schedule(&request)
    }

    func succeeded(_ response: inout Response, to request: URLRequest, context: inout CallContext) throws {
        try acts.success(&response, request)
    }
}
