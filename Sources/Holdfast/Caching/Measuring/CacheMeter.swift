// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

private import HoldfastStorage
private import Synchronization

/// The counters of a cache, in stripes, so that threads that count at the same time seldom meet.
final class CacheMeter: Sendable {
    private final class Stripe: Sendable {
        let state = Mutex(MeterState())
    }

    static let stripeCount = 4
    /// How many origins are told apart by a reader.
    static let originLimit = 64

    private let stripes = (0..<stripeCount).map { _ in Stripe() }

    /// Which stripe a call counts in: all it does goes there, so that a hit is counted where its request was.
    static func stripe() -> Int { ThreadStripe.current(of: stripeCount) }

    func arrive(from origin: CountedOrigin?, in minute: Int64, stripe: Int) {
        stripes[stripe].state.withLock { $0.arrive(from: origin, in: minute) }
    }

    /// Counts a request and its fresh hit at once.
    func hit(from origin: CountedOrigin, in minute: Int64, stripe: Int, bytes: Int, saved: Duration) {
        stripes[stripe].state.withLock { $0.hit(from: origin, in: minute, bytes: bytes, saved: saved) }
    }

    func count(
        for origin: CountedOrigin?,
        in minute: Int64,
        stripe: Int,
        _ change: (inout CacheStatistics) -> Void
    ) {
        stripes[stripe].state.withLock { $0.count(for: origin, in: minute, change) }
    }

    // MARK: Reading

    private var states: [MeterState] { stripes.map { $0.state.withLock { $0 } } }

    /// What was counted since the start.
    var total: CacheStatistics {
        states.reduce(into: CacheStatistics()) { $0 += $1.total.counts }
    }

    /// What was counted in some minutes.
    func total(in minutes: Range<Int64>) -> CacheStatistics {
        states.reduce(into: CacheStatistics()) { $0 += $1.total.counts(in: minutes) }
    }

    /// What was counted in each of some minutes.
    func totals(in minutes: Range<Int64>) -> [CacheStatistics] {
        let states = states
        return minutes.map { minute in
            states.reduce(into: CacheStatistics()) { $0 += $1.total.counts(in: minute..<minute + 1) }
        }
    }

    /// What was counted for an origin: since the start, or in some minutes.
    func origin(_ name: String, in minutes: Range<Int64>? = nil) -> CacheStatistics {
        states.reduce(into: CacheStatistics()) { sum, state in
            for origin in state.origins where origin.name == name {
                sum += minutes.map { origin.ring.counts(in: $0) } ?? origin.ring.counts
            }
        }
    }

    /// The origins with the most requests, and all others together.
    var origins: (each: [(name: String, counts: CacheStatistics)], other: CacheStatistics) {
        let states = states
        var sums: [String: CacheStatistics] = [:]
        for origin in states.flatMap(\.origins) { sums[origin.name, default: CacheStatistics()] += origin.ring.counts }
        let ranked = sums.sorted { ($1.value.requests, $0.key) < ($0.value.requests, $1.key) }
        let other = states.map(\.other) + ranked.dropFirst(CacheMeter.originLimit).map(\.value)
        return (
            ranked.prefix(CacheMeter.originLimit).map { ($0.key, $0.value) },
            other.reduce(into: CacheStatistics()) { $0 += $1 }
        )
    }
}
