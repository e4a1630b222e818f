// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastSemantics
import Synchronization

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// What happened, in order, over all hooks of a test.
final class HookLog: Sendable {
    private let lines = Mutex<[String]>([])

    var entries: [String] { lines.withLock { $0 } }

    func add(_ line: String) {
        lines.withLock { $0.append(line) }
    }
}

/// A hook that writes down every moment and does what the test gives it to do.
struct RecordingHook: ServiceHook {
    let name: String
    let log: HookLog
    var scope: HookScope = .call
    var schedule: @Sendable (inout URLRequest, inout CallContext) async throws -> Response? = { _, _ in nil }
    var success: @Sendable (inout Response, URLRequest) async throws -> Void = { _, _ in }
    var failure: @Sendable (any Error) async -> Response? = { _ in nil }

    func onSchedule(_ request: inout URLRequest, _ context: inout CallContext) async throws -> Response? {
        log.add("\(name).schedule")
        return try await schedule(&request, &context)
    }

    func onSuccess(_ response: inout Response, _ request: URLRequest, _ context: inout CallContext) async throws {
        log.add("\(name).success(\(response.status.rawValue), \(response.source))")
        try await success(&response, request)
    }

    func onFailure(_ error: any Error, _ request: URLRequest, _ context: inout CallContext) async -> Response? {
        log.add("\(name).failure")
        return await failure(error)
    }

    func onCancel(_ request: URLRequest, _ context: CallContext) {
        log.add("\(name).cancel")
    }
}

struct Refused: Error, Equatable {
    var reason = ""
}

extension URLRequest {
    static func get(_ text: String = "http://origin.example/a", _ fields: [String: String] = [:]) -> URLRequest {
        request("GET", text, fields)
    }

    static func request(_ method: String, _ text: String, _ fields: [String: String] = [:]) -> URLRequest {
        guard let url = URL(string: text) else { preconditionFailure("\(text) is no URL") }
        var request = URLRequest(url: url)
        request.httpMethod = method
        for (name, value) in fields { request.setValue(value, forHTTPHeaderField: name) }
        return request
    }
}
