// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import Holdfast
internal import HoldfastCommand
internal import HoldfastSemantics
internal import HoldfastStorage
internal import Synchronization

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// Replays a load through one pipeline and measures the time of each call.
struct Run: Sendable {
    /// The pipeline for the calls.
    let pipeline: Pipeline
    /// Makes the requests.
    let target: any Target
    /// The calls.
    let load: Load
    /// How many calls are in flight at once.
    let concurrency: Int
    /// Whether the first call of each resource requests revalidation.
    let revalidatesFirst: Bool

    /// What the callers saw.
    struct Outcome: Sendable, Equatable {
        /// The time of each call, from the request to the end of its body; in no order.
        var latencies: [Duration] = []
        /// Calls that ended in an error or a status of 500 or more.
        var failed = 0
        /// The time from the first call to the end of the last.
        var duration = Duration.zero
    }

    /// Makes every call once, `concurrency` at a time.
    ///
    /// - Throws: only `CancellationError`; calls that fail are counted.
    func perform(_ progress: ProgressMeter) async throws -> Outcome {
        let clock = pipeline.configuration.clock
        let queue = Queue(load.calls)
        let start = clock.now
        var outcome = Outcome()
        try await withThrowingTaskGroup(of: Outcome.self) { group in
            for _ in 0..<min(concurrency, load.calls.count) {
                group.addTask {
                    var part = Outcome()
                    while let call = queue.next() {
                        let began = clock.now
                        if try await !succeeds(call) { part.failed += 1 }
                        part.latencies.append(began.duration(to: clock.now))
                        progress.advance()
                    }
                    return part
                }
            }
            for try await part in group {
                outcome.latencies += part.latencies
                outcome.failed += part.failed
            }
        }
        outcome.duration = start.duration(to: clock.now)
        return outcome
    }

    private func succeeds(_ call: Call) async throws -> Bool {
        var options = CallOptions()
        if revalidatesFirst, call.isFirstOfResource { options.cache = .revalidate }
        do {
            let response = try await pipeline.send(target.request(for: call), options: options)
            for try await _ in response.body {}
            return response.status.rawValue < 500
        } catch {
            if Task.isCancelled { throw CancellationError() }
            return false
        }
    }

    /// Gives out each call once.
    private final class Queue: Sendable {
        private let calls: [Call]
        private let handedOut = Atomic<Int>(0)

        init(_ calls: [Call]) {
            self.calls = calls
        }

        func next() -> Call? {
            let index = handedOut.add(1, ordering: .relaxed).oldValue
            return index < calls.count ? calls[index] : nil
        }
    }
}

/// The figures of one run: a row of the table, and an object of the JSON with these keys.
struct RunResult: Sendable, Equatable, Encodable {
    /// The run's name.
    let name: String
    /// Whether the run had a cache; without one its figures are 0.
    let cached: Bool
    /// Calls made.
    let calls: Int
    /// Requests that reached the origin.
    let sent: Int
    /// Calls that ended in an error or a status of 500 or more.
    let failed: Int
    /// Calls answered from the store without waiting for the origin.
    let hits: Int
    /// Calls answered from the store after a 304.
    let revalidated: Int
    /// Calls answered by the exchange of another call with the same request at the same time.
    let collapsed: Int
    /// Calls that were looked up and not answered from the store.
    let misses: Int
    /// Hits of all calls that were looked up, 0 to 1.
    let hitRatio: Double
    /// The share of the delivered body bytes that hits delivered, 0 to 1.
    let byteHitRatio: Double
    /// Calls answered from the store after a 304, of all calls that were looked up, 0 to 1.
    let revalidationRatio: Double
    /// Body bytes that came from the store or from another call's exchange instead of the network.
    let bytesSaved: Int
    /// The total waiting time that hits saved their callers, in milliseconds.
    let timeSavedms: Double
    /// Body bytes that the origin sent.
    let bytesFromNetwork: Int
    /// Store failures that were treated as misses.
    let storeFailures: Int
    /// The time that half of the calls did not exceed, in milliseconds.
    let p50ms: Double
    /// The time that 99 % of the calls did not exceed, in milliseconds.
    let p99ms: Double
    /// The length of the run.
    let seconds: Double

    /// The figures of a run that ended.
    init(name: String, outcome: Run.Outcome, traffic: Traffic, cache: CacheStatistics?) {
        let latencies = outcome.latencies.sorted()
        let counts = cache ?? CacheStatistics()
        self.name = name
        cached = cache != nil
        calls = latencies.count
        sent = traffic.sends
        failed = outcome.failed
        hits = counts.allHits
        collapsed = counts.collapsed
        revalidated = counts.revalidated
        misses = counts.misses
        hitRatio = RunResult.rounded(counts.hitRatio, to: 10_000)
        byteHitRatio = RunResult.rounded(counts.byteHitRatio, to: 10_000)
        revalidationRatio = RunResult.rounded(counts.revalidationRatio, to: 10_000)
        bytesSaved = counts.bytesSaved
        timeSavedms = RunResult.milliseconds(counts.timeSaved)
        bytesFromNetwork = traffic.bodyBytes
        storeFailures = counts.storeFailures
        p50ms = RunResult.milliseconds(RunResult.percentile(50, of: latencies))
        p99ms = RunResult.milliseconds(RunResult.percentile(99, of: latencies))
        seconds = RunResult.rounded(outcome.duration / .seconds(1), to: 1_000)
    }

    /// The nearest-rank percentile: the smallest value that at least `percent` percent of all do not exceed.
    ///
    /// - Parameters:
    ///   - percent: 0 to 100.
    ///   - sorted: the values in ascending order; the result is zero if there are none.
    static func percentile(_ percent: Int, of sorted: [Duration]) -> Duration {
        guard !sorted.isEmpty else { return .zero }
        let rank = (sorted.count * percent + 99) / 100
        return sorted[min(max(rank, 1), sorted.count) - 1]
    }

    private static func milliseconds(_ duration: Duration) -> Double {
        rounded(duration / .milliseconds(1), to: 1_000)
    }

    private static func rounded(_ value: Double, to fractions: Double) -> Double {
        (value * fractions).rounded() / fractions
    }
}

/// The four runs: the same load with a bare client, with retries, with a cache as well, and with the disk cache that is left.
struct Scenario: Sendable {
    /// Where the calls go.
    let target: any Target
    /// The calls.
    let load: Load
    /// How many of them are in flight at once.
    let concurrency: Int
    /// The clock of all runs.
    let clock: any HoldfastClock
    /// Opens the disk cache; called twice, the second time after the first store was closed.
    let openStore: @Sendable () async throws -> any CacheStore

    /// Retry rules that outlast the built-in origin's failures at its defaults: a call fails once in a billion.
    static let retries: RetryRules = {
        var rules = RetryRules(backoff: Backoff(base: .milliseconds(20), cap: .milliseconds(500)), maxAttempts: 8)
        rules.throttlingBackoff = rules.backoff
        // A burst of failures may empty the budget; the retries then wait for tokens instead of giving up.
        rules.parks = true
        return rules
    }()

    /// Makes the runs, in order.
    ///
    /// The store is opened before the first run, so that an unusable directory is detected at once.
    ///
    /// - Throws: the error of `openStore`, or `CancellationError`. The store is closed in any case.
    func run(on console: Console) async throws -> [RunResult] {
        let cold = HTTPCache(store: try await openStore())
        var results: [RunResult] = []
        do {
            try await cold.remove(.all)
            results.append(try await replay("bare", console: console))
            results.append(try await replay("retries", retries: true, console: console))
            results.append(try await replay("cache+retries", retries: true, cache: cold, console: console))
        } catch {
            await cold.close()
            throw error
        }
        await cold.close()

        let warm = HTTPCache(store: try await openStore())
        do {
            let revalidates = target.revalidatesAfterRestart
            results.append(
                try await replay(
                    "from disk",
                    retries: true,
                    cache: warm,
                    revalidatesFirst: revalidates,
                    console: console
                )
            )
        } catch {
            await warm.close()
            throw error
        }
        await warm.close()
        return results
    }

    private func replay(
        _ name: String,
        retries: Bool = false,
        cache: HTTPCache? = nil,
        revalidatesFirst: Bool = false,
        console: Console
    ) async throws -> RunResult {
        var configuration = PipelineConfiguration()
        configuration.clock = clock
        configuration.attemptTimeout = target.attemptTimeout
        let connection = target.connect()
        let run = Run(
            pipeline: Pipeline(
                transport: connection.transport,
                cache: cache,
                retrierFactory: retries ? BackoffRetrier.factory(strategy: .exponential(Scenario.retries)) : .never,
                configuration: configuration
            ),
            target: target,
            load: load,
            concurrency: concurrency,
            revalidatesFirst: revalidatesFirst
        )
        let line = ProgressLine(on: console)
        defer { line.clear() }
        let count = load.calls.count
        let outcome = try await run.perform(
            ProgressMeter(total: count, on: line) { done in "\(name): \(done) of \(count) calls" }
        )
        return RunResult(name: name, outcome: outcome, traffic: connection.traffic(), cache: cache?.statistics)
    }
}
