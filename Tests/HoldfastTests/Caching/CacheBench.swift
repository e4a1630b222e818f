// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastSemantics
import HoldfastStorage
import HoldfastTesting

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A pipeline with a cache over a scripted origin and a clock that stands still.
struct CacheBench {
    let clock: ManualClock
    let transport: ScriptedTransport
    let cache: HTTPCache
    let pipeline: Pipeline
    let events = EventRecorder()

    init(
        _ transport: ScriptedTransport,
        store: any CacheStore = MemoryStore(capacity: 1 << 20),
        mode: CacheOptions.Mode = .private,
        hooks: [any ServiceHook] = [],
        clock: ManualClock = ManualClock(),
        retrierFactory: any RetrierFactory = NilRetrier.Factory(),
        _ change: (inout PipelineConfiguration) -> Void = { _ in },
        options changeOptions: (inout CacheOptions) -> Void = { _ in }
    ) {
        self.transport = transport
        self.clock = clock
        var options = CacheOptions()
        options.mode = mode
        changeOptions(&options)
        cache = HTTPCache(store: store, options: options)
        var configuration = PipelineConfiguration()
        configuration.clock = clock
        configuration.observers = [events]
        change(&configuration)
        pipeline = Pipeline(
            transport: transport,
            cache: cache,
            retrierFactory: retrierFactory,
            hooks: hooks,
            configuration: configuration
        )
    }

    init(_ steps: [ScriptedTransport.Step], store: any CacheStore = MemoryStore(capacity: 1 << 20)) {
        self.init(ScriptedTransport(steps), store: store)
    }

    struct Answer: Equatable {
        var status: Int
        var body: String
        var source: ResponseSource
    }

    @discardableResult
    func load(_ request: URLRequest = .get(), _ options: CallOptions = CallOptions()) async throws -> Answer {
        let response = try await pipeline.send(request, options: options)
        let body = String(decoding: try await response.body.collect(), as: UTF8.self)
        return Answer(status: response.status.rawValue, body: body, source: response.source)
    }

    var sends: Int { transport.sent.count }

    func sent(_ field: String) -> [String?] {
        transport.sent.map { $0.request.value(forHTTPHeaderField: field) }
    }
}

extension HTTPCache {
    /// Removes or marks, for tests of both.
    @discardableResult
    func purge(
        _ selection: CacheSelection,
        softly: Bool,
        now: Timestamp = SystemClock().timestamp
    ) async throws -> Int? {
        softly ? try await markStale(selection, now: now) : try await remove(selection, now: now)
    }
}

extension CacheBench.Answer {
    static func network(_ body: String, _ status: Int = 200) -> Self {
        .init(status: status, body: body, source: .network(attempts: 1))
    }

    static func fresh(_ body: String, _ status: Int = 200) -> Self {
        .init(status: status, body: body, source: .fresh)
    }

    static func revalidated(_ body: String) -> Self {
        .init(status: 200, body: body, source: .revalidated)
    }
}
