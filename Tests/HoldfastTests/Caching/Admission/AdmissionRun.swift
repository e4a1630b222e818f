// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastSemantics
import HoldfastStorage
import HoldfastTesting
import Synchronization

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Plays a sequence through a pipeline with a cache.
///
/// All tasks of the calls run one after another on an executor that this type drives, so that a sequence over memory has one outcome.
/// A store that works on other threads is waited for.
struct AdmissionRun {
    private let sequence: AdmissionSequence
    private let clock = ManualClock()
    private let executor: StepwiseExecutor
    private let origin: AdmissionOrigin
    private let pipelines: [AdmissionUser: Pipeline]
    private let host: String
    /// Whether all that a step leads to happens on the executor.
    private let isStepwise: Bool

    /// - Parameter host: its own for each run over one store, so that no run meets what another one stored.
    static func play(_ sequence: AdmissionSequence, store: any CacheStore, host: String) async -> AdmissionLog {
        let run = AdmissionRun(sequence, store: store, host: host)
        await run.play()
        return run.origin.log
    }

    private init(_ sequence: AdmissionSequence, store: any CacheStore, host: String) {
        self.sequence = sequence
        self.host = host
        isStepwise = sequence.setting.store == .memory
        executor = StepwiseExecutor(seed: sequence.seed, isShuffled: sequence.seed / 3 % 2 == 0)
        origin = AdmissionOrigin(clock: clock)
        var options = CacheOptions()
        options.mode = sequence.setting.mode
        var configuration = PipelineConfiguration()
        configuration.clock = clock
        configuration.attemptTimeout = nil
        configuration.executor = executor
        let cache = HTTPCache(store: store, options: options)
        var pipelines: [AdmissionUser: Pipeline] = [:]
        for user in AdmissionUser.allCases {
            if sequence.setting.identity == .refreshedField, user != .guest {
                configuration.authorization = AdmissionRun.authorization(of: user)
            }
            let addsKey = sequence.setting.identity == .hookField && user != .guest
            pipelines[user] = Pipeline(
                transport: origin,
                cache: cache,
                retrierFactory: NilRetrier.Factory(),
                hooks: addsKey ? [KeyHook(key: user.rawValue)] : [],
                configuration: configuration
            )
        }
        self.pipelines = pipelines
    }

    private static func authorization(of user: AdmissionUser) -> AuthorizationRefresh {
        AuthorizationRefresh(
            credential: user.rawValue,
            for: .matching { _ in true },
            apply: { $1.setValue($0, forHTTPHeaderField: "X-Api-Key") },
            refresh: { _ in user.rawValue }
        )
    }

    private func play() async {
        var tasks: [Int: Task<Void, Never>] = [:]
        for step in sequence.steps {
            switch step {
            case .advance(let milliseconds): clock.advance(by: .milliseconds(milliseconds))
            case .change(let path): origin.change(path: path)
            case .release(let call): origin.release(call: call)
            case .call(let plan, let answer, let isHeld):
                origin.plan(plan, answer: answer, isHeld: isHeld)
                tasks[plan.number] = begin(plan, answer)
            case .cancel(let call, let isNoticed):
                tasks[call]?.cancel()
                if !isNoticed {
                    // The caller knows; what is to be done about it may still be under way.
                    while isUnfinished(call: call), executor.step() {}
                    continue
                }
            }
            await settle()
        }
        for call in origin.heldCalls.sorted() {
            origin.release(call: call)
            await settle()
        }
        if !isStepwise { await drain() }
    }

    private func isUnfinished(call: Int) -> Bool {
        origin.log.calls.contains { $0.plan.number == call && $0.endedAt == nil }
    }

    /// Waits for what outlives the calls, which runs on the executor too.
    private func drain() async {
        let drained = CountWatch()
        Task { [pipelines] in
            for pipeline in pipelines.values { await pipeline.drain() }
            drained.increment()
        }
        let begun = ContinuousClock.now
        while drained.count == 0, ContinuousClock.now - begun < .seconds(30) {
            _ = executor.drain()
            await Task.yield()
        }
    }

    private func begin(_ plan: PlannedCall, _ answer: PlannedAnswer) -> Task<Void, Never> {
        let (request, options) = (request(of: plan, answer), options(of: plan))
        let index = origin.begin(plan, fields: HeaderFields(request.allHTTPHeaderFields ?? [:]))
        return Task(executorPreference: executor) { [origin, pipeline = pipelines[plan.user]] in
            guard let pipeline else { return }
            do {
                let response = try await pipeline.send(request, options: options)
                var bytes: [UInt8] = []
                var isBroken = false
                do {
                    for try await chunk in response.body { chunk.append(to: &bytes) }
                } catch {
                    isBroken = true
                }
                origin.end(call: index) { call in
                    call.status = response.status.rawValue
                    call.fields = response.fields
                    call.body = String(decoding: bytes, as: UTF8.self)
                    call.isBroken = isBroken
                    call.source = "\(response.source)"
                }
            } catch {
                origin.end(call: index) { $0.error = "\(error)" }
            }
        }
    }

    /// Runs until every call has ended or waits for what is held.
    private func settle() async {
        var isIdleFor = 0
        let begun = ContinuousClock.now
        var idleSince = begun
        while true {
            if executor.drain() { (isIdleFor, idleSince) = (0, .now) }
            if isStepwise { return }
            let held = origin.heldCalls
            let unfinished = origin.log.calls.filter { $0.endedAt == nil && !held.contains($0.plan.number) }
            // Who joined the fetch of another call waits too, and cannot be told from one whom the store keeps waiting.
            if unfinished.isEmpty { return }
            // Turns alone prove nothing: a thread of the store's may be kept from its core for all of them.
            if !held.isEmpty, isIdleFor > 2_000, ContinuousClock.now - idleSince > .milliseconds(2) { return }
            isIdleFor += 1
            // What has not ended by then is reported as stuck.
            if isIdleFor % 1_000 == 0, ContinuousClock.now - begun > .seconds(30) { return }
            await Task.yield()
        }
    }

    // MARK: Requests

    private func request(of plan: PlannedCall, _ answer: PlannedAnswer) -> URLRequest {
        guard let url = URL(string: "http://\(host)\(plan.path)") else {
            preconditionFailure("\(plan.path) is no path")
        }
        var request = URLRequest(url: url)
        request.httpMethod = plan.method
        var fields = plan.selecting
        fields["X-Call"] = "\(plan.number)"
        fields["Cache-Control"] = plan.cacheControl
        if plan.user != .guest {
            switch sequence.setting.identity {
            case .authorization: fields["Authorization"] = "Bearer \(plan.user.rawValue)"
            case .cookie: fields["Cookie"] = "sid=\(plan.user.rawValue)"
            case .credentialField: fields["X-Api-Key"] = plan.user.rawValue
            case .principal, .preparedField, .refreshedField, .hookField: break
            }
        }
        let known = origin.validators(of: plan.path, for: plan.user, answer, isOld: plan.condition == .ifNoneMatchOld)
        switch plan.condition {
        case .ifNoneMatch, .ifNoneMatchOld: fields["If-None-Match"] = known.tag
        case .ifNoneMatchAny: fields["If-None-Match"] = "*"
        case .ifModifiedSince: fields["If-Modified-Since"] = known.date
        case .ifMatch: fields["If-Match"] = known.tag
        case nil: break
        }
        if let range = plan.range {
            fields["Range"] = "bytes=" + AdmissionRun.bytes(ofCells: range)
            if plan.hasIfRange { fields["If-Range"] = answer.tag == .strong ? known.tag : known.date }
        }
        if plan.isUnsafe { request.httpBody = Data("change".utf8) }
        if let content = plan.content { request.httpBody = Data(content.utf8) }
        for (name, value) in fields { request.setValue(value, forHTTPHeaderField: name) }
        return request
    }

    private func options(of plan: PlannedCall) -> CallOptions {
        var options = CallOptions()
        switch plan.directive {
        case .none: break
        case .reload: options.cache = .reload
        case .revalidate: options.cache = .revalidate
        case .onlyIfCached: options.cache = .onlyIfCached
        case .noStore: options.cache = .noStore
        case .maxStale: options.cache = .maxStale(.seconds(20))
        }
        if plan.isQuery { options.cachesContent = .raw }
        switch sequence.setting.identity {
        case .principal where plan.user != .guest: options.principal = plan.user.rawValue
        case .credentialField: options.credentialFields = ["X-Api-Key"]
        case .preparedField where plan.user != .guest:
            let key = plan.user.rawValue
            options.prepare = [{ request, _ in request.setValue(key, forHTTPHeaderField: "X-Api-Key") }]
        default: break
        }
        return options
    }

    private static func bytes(ofCells range: String) -> String {
        let size = AdmissionOrigin.cellSize
        let ends = range.split(separator: "-", omittingEmptySubsequences: false).map { Int($0) }
        return switch (ends[0], ends[1]) {
        case (let first?, let last?): "\(first * size)-\((last + 1) * size - 1)"
        case (let first?, nil): "\(first * size)-"
        case (nil, let count?): "-\(count * size)"
        case (nil, nil): "0-"
        }
    }
}

/// Adds a user's key, as a hook of an application's own does.
private struct KeyHook: ServiceHook {
    let key: String
    var scope: HookScope { .message }

    func onSchedule(_ request: inout URLRequest, _ context: inout CallContext) async throws -> Response? {
        request.setValue(key, forHTTPHeaderField: "X-Api-Key")
        return nil
    }
}
