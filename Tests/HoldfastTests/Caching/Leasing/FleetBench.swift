// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastSemantics
import HoldfastStorage
import HoldfastTestKit
import HoldfastTesting

@testable import Holdfast

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Several caches over one store that leases, before one origin: the processes of a fleet, but in one.
struct FleetBench {
    /// One of the processes.
    struct Process {
        let store: FleetStore
        let cache: HTTPCache
        let pipeline: Pipeline
        let events = EventRecorder()

        init(_ store: FleetStore, _ options: CacheOptions, _ clock: ManualClock, _ origin: any Transport) {
            self.store = store
            cache = HTTPCache(store: store, options: options)
            var configuration = PipelineConfiguration()
            configuration.clock = clock
            configuration.attemptTimeout = nil
            configuration.observers = [events]
            pipeline = Pipeline(
                transport: origin,
                cache: cache,
                retrierFactory: NilRetrier.Factory(),
                configuration: configuration
            )
        }

        func call(_ request: URLRequest = .get(), _ options: CallOptions = CallOptions()) -> Task<
            CacheBench.Answer, any Error
        > {
            Task {
                let response = try await pipeline.send(request, options: options)
                let body = String(decoding: try await response.body.collect(), as: UTF8.self)
                return .init(status: response.status.rawValue, body: body, source: response.source)
            }
        }

        func calls(_ count: Int, _ request: URLRequest = .get()) -> [Task<CacheBench.Answer, any Error>] {
            (0..<count).map { _ in call(request) }
        }

        func load(
            _ request: URLRequest = .get(),
            _ options: CallOptions = CallOptions()
        ) async throws -> CacheBench.Answer {
            try await call(request, options).value
        }

        func waitForReaders(_ count: Int) async { await until { cache.fetches.readers >= count } }

        /// Waits until nothing is in the air any more.
        func waitForQuiet() async {
            await pipeline.drain()
            await until { cache.fetches.count == 0 && cache.fetches.backgroundCount == 0 }
        }

        /// What came of the waits for other processes.
        var waits: [String] { events.events.filter { $0.name == .fillAwaited }.compactMap(\.detail) }
    }

    let clock = ManualClock()
    let leases: SimulatedLeases
    let origin: GatedOrigin
    let processes: [Process]

    init(
        _ origin: GatedOrigin,
        processes count: Int = 2,
        options: CacheOptions = CacheOptions(),
        store: any CacheStore = MemoryStore(capacity: 16 << 20)
    ) {
        let leases = SimulatedLeases(clock: clock)
        self.leases = leases
        self.origin = origin
        let clock = clock
        processes = (0..<count).map { _ in Process(FleetStore(store, leasing: leases), options, clock, origin) }
    }

    var one: Process { processes[0] }
    var other: Process { processes[1] }
    var sends: Int { origin.asked.count }

    /// Takes the lease that a plain GET would ask for, as a process that is not of this fleet would.
    func takeLease(for length: Duration = .seconds(5), _ request: URLRequest = .get()) async -> (any FillLease)? {
        guard let lookup = lookup(request) else { return nil }
        let pathMark = InvalidationLog().pathMark(of: lookup.key.target)
        let terms = FetchTerms(lookup, nominated: [], tags: [], pathMark: pathMark)
        let variant = StoreKey(terms.digest(one.store.secret))
        guard case .granted(let lease) = await leases.lease(lookup.storeKey, variant: variant, for: length) else {
            return nil
        }
        return lease
    }

    func lookup(_ request: URLRequest = .get()) -> CacheLookup? {
        CacheLookup(
            request,
            context: CallContext(clock: clock),
            cache: one.cache,
            history: LookupHistory(begun: clock.now)
        )
    }

    func waitForQuiet() async {
        for process in processes { await process.waitForQuiet() }
    }
}

extension URLRequest {
    static func get(with fields: [String: String]) -> URLRequest { get("http://origin.example/a", fields) }
}
