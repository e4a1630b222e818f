// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Holdfast

/// The figures of one run: a row of the table, and an object of the JSON with these very keys.
struct RunResult: Sendable, Equatable, Encodable {
    /// The run's name.
    let name: String
    /// Whether a cache took part; without one its figures are 0.
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
    /// Calls answered by the exchange of another call that asked for the same at the same time.
    let collapsed: Int
    /// Calls that were looked up and answered by the origin, or not at all.
    let misses: Int
    /// Hits of all calls that were looked up, 0 to 1.
    let hitRatio: Double
    /// The share of the delivered body bytes that hits delivered, 0 to 1.
    let byteHitRatio: Double
    /// Calls answered from the store after a 304, of all calls that were looked up, 0 to 1.
    let revalidationRatio: Double
    /// Body bytes that came from the store or from another call's exchange instead of the network.
    let bytesSaved: Int
    /// The waiting that hits spared their callers, in milliseconds, all of them together.
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
    ///   - sorted: the values in ascending order; zero is the answer where there are none.
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
