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

/// A pipeline with a caching service hook over a store that can be closed and opened again, as by a restart.
final class TimeToLiveBench {
    let transport: any Transport
    let clock: ManualClock
    let ttl: Duration
    private let openStore: () async throws -> any CacheStore
    private(set) var hook: CachingServiceHook
    private(set) var pipeline: Pipeline

    static let url = "http://h.example/a"

    private init(
        _ transport: any Transport,
        ttl: Duration,
        clock: ManualClock,
        _ openStore: @escaping () async throws -> any CacheStore
    ) async throws {
        self.transport = transport
        self.ttl = ttl
        self.clock = clock
        self.openStore = openStore
        hook = CachingServiceHook(ttl: ttl, store: try await openStore())
        pipeline = TimeToLiveBench.pipeline(transport, hook, clock)
    }

    /// Runs `body` over each call's own store and removes what it left.
    static func with(
        _ kind: EachStore,
        _ transport: any Transport,
        ttl: Duration = .seconds(600),
        clock: ManualClock = ManualClock(),
        _ body: (TimeToLiveBench) async throws -> Void
    ) async throws {
        switch kind {
        case .memory:
            let store = MemoryStore(capacity: 4 << 20)
            try await body(try await TimeToLiveBench(transport, ttl: ttl, clock: clock) { store })
        case .disk:
            try await DiskCacheTests.withDirectory { directory in
                let parent = directory.deletingLastPathComponent()
                try FileManager.default.createDirectory(at: parent, withIntermediateDirectories: true)
                let bench = try await TimeToLiveBench(transport, ttl: ttl, clock: clock) {
                    try await DiskStore.open(
                        directory: directory.path,
                        capacity: 4 << 20,
                        now: StoreInstant(milliseconds: clock.timestamp.millisecondsSinceEpoch)
                    )
                }
                try await body(bench)
                await bench.hook.cache.close()
            }
        }
    }

    private static func pipeline(
        _ transport: any Transport,
        _ hook: CachingServiceHook,
        _ clock: ManualClock
    ) -> Pipeline {
        var configuration = PipelineConfiguration()
        configuration.clock = clock
        configuration.attemptTimeout = nil
        return Pipeline(transport: transport, hooks: [hook], configuration: configuration)
    }

    /// What a restart leaves: a disk store is closed and opened again, one in memory goes to another hook.
    func restart() async throws {
        await pipeline.drain()
        if hook.cache.store is DiskStore { await hook.cache.close() }
        hook = CachingServiceHook(ttl: ttl, store: try await openStore())
        pipeline = TimeToLiveBench.pipeline(transport, hook, clock)
    }

    @discardableResult
    func load(
        _ request: URLRequest = .get(url),
        _ options: CallOptions = CallOptions()
    ) async throws -> CacheBench.Answer {
        let response = try await pipeline.send(request, options: options)
        let body = String(decoding: try await response.body.collect(), as: UTF8.self)
        return CacheBench.Answer(status: response.status.rawValue, body: body, source: response.source)
    }

    var entryCount: Int { hook.cache.store.statistics.entryCount }
}
