// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastSemantics
private import HoldfastStorage
private import Synchronization

/// The counters of a cache, in stripes, to reduce contention between threads.
final class CacheMeter: Sendable {
    private final class Stripe: Sendable {
        let state = Mutex(MeterState())
    }

    static let stripeCount = 4
    /// How many origins are counted separately.
    static let originLimit = 64

    private let stripes = (0..<stripeCount).map { _ in Stripe() }

    /// The stripe for a call: all of its events are counted there, so that a hit is counted with its request.
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

/// Counts in total and by origin, for a limited number of origins.
///
/// Which origins have a place depends on their recent requests, by the Space-Saving algorithm (Metwally et al. 2005): when all
/// places are taken, a new origin replaces the one with the fewest, and inherits its weight. So an origin with more than one in
/// `places` recent requests always has a place. "Recent" means that weights are halved every ten minutes.
struct MeterState: Sendable {
    /// How many minutes are kept for the total, and for each origin.
    static let totalMinutes = 60
    static let originMinutes = 5

    private struct Place: Sendable {
        let name: String
        var weight = 0
        var ring = MinuteRing(length: originMinutes)
    }

    private(set) var total = MinuteRing(length: totalMinutes)
    /// Counts for origins without a place.
    private(set) var other = CacheStatistics()
    private let capacity: Int
    /// The hashes of the origins, by place; separate, so that a search reads little memory.
    private var hashes: [Int] = []
    private var places: [Place] = []
    private var last = 0
    private var decade = Int64.min

    /// - Parameter places: how many origins have a place; at least 1.
    init(places: Int = CacheMeter.originLimit) { capacity = max(1, places) }

    /// Counts a request, and gives its origin a place.
    mutating func arrive(from origin: CountedOrigin?, in minute: Int64) {
        total.count(in: minute) { $0.requests += 1 }
        guard let origin else { return other.requests += 1 }
        let index = placeOfRequest(to: origin, in: minute)
        places[index].ring.count(in: minute) { $0.requests += 1 }
    }

    /// Counts a request and its fresh hit, as ``arrive(from:in:)`` and ``count(for:in:_:)`` do one after the other.
    mutating func hit(from origin: CountedOrigin, in minute: Int64, bytes: Int, saved: Duration) {
        let index = placeOfRequest(to: origin, in: minute)
        total.count(in: minute) { $0.addHit(bytes: bytes, saved: saved) }
        places[index].ring.count(in: minute) { $0.addHit(bytes: bytes, saved: saved) }
    }

    private mutating func placeOfRequest(to origin: CountedOrigin, in minute: Int64) -> Int {
        if minute / 10 > decade {
            decade = minute / 10
            for index in places.indices { places[index].weight /= 2 }
        }
        let index = place(of: origin) ?? makePlace(for: origin)
        places[index].weight += 1
        return index
    }

    /// Counts what happened to a request.
    mutating func count(for origin: CountedOrigin?, in minute: Int64, _ change: (inout CacheStatistics) -> Void) {
        total.count(in: minute, change)
        if let origin, let index = place(of: origin) {
            places[index].ring.count(in: minute, change)
        } else {
            change(&other)
        }
    }

    private mutating func place(of origin: CountedOrigin) -> Int? {
        if last < hashes.count, hashes[last] == origin.hash { return last }
        guard let index = hashes.firstIndex(of: origin.hash) else { return nil }
        last = index
        return index
    }

    private mutating func makePlace(for origin: CountedOrigin) -> Int {
        guard places.count == capacity, let least = places.indices.min(by: { places[$0].weight < places[$1].weight })
        else {
            hashes.append(origin.hash)
            places.append(Place(name: origin.name))
            return places.count - 1
        }
        other += places[least].ring.counts
        hashes[least] = origin.hash
        places[least] = Place(name: origin.name, weight: places[least].weight)
        return least
    }

    /// The origins that have a place.
    var origins: [(name: String, ring: MinuteRing)] { places.map { ($0.name, $0.ring) } }
}

/// Counts since the start, with their values at the beginning of each recent minute.
///
/// A window is the difference of two values, so counting only has to check the minute and needs no second set of counts.
struct MinuteRing: Sendable {
    private struct Mark: Sendable {
        let minute: Int64
        /// The counts before it.
        let counts: CacheStatistics
    }

    /// What was counted since the start.
    private(set) var counts = CacheStatistics()
    /// How many minutes there are in addition to the current one.
    let length: Int
    /// Minutes without counts have none.
    private var marks: [Mark] = []
    /// The index of the oldest, once all places are taken.
    private var oldest = 0
    private var running = Int64.min

    /// - Parameter length: how many minutes are kept in addition to the current one; at least 1.
    init(length: Int) { self.length = max(1, length) }

    /// Counts in a minute; one that is already over counts as the current one.
    mutating func count(in minute: Int64, _ change: (inout CacheStatistics) -> Void) {
        if minute > running { begin(minute) }
        change(&counts)
    }

    private mutating func begin(_ minute: Int64) {
        running = minute
        let mark = Mark(minute: minute, counts: counts)
        if marks.count <= length {
            marks.append(mark)
        } else {
            marks[oldest] = mark
            oldest = (oldest + 1) % marks.count
        }
    }

    /// The counts in these minutes, as far as they are kept.
    func counts(in minutes: Range<Int64>) -> CacheStatistics {
        before(minutes.upperBound) - before(minutes.lowerBound)
    }

    /// The counts before a minute, or before the oldest one that is known.
    private func before(_ minute: Int64) -> CacheStatistics {
        for offset in marks.indices {
            let mark = marks[(oldest + offset) % marks.count]
            if mark.minute >= minute { return mark.counts }
        }
        return counts
    }
}

/// The origin of a target, for counting.
struct CountedOrigin: Sendable {
    /// Different in each process, so that nobody can choose colliding origins.
    let hash: Int
    private let target: String
    private let length: Int

    init(of target: TargetURI) { self.init(canonical: target.canonical, originLength: target.originLength) }

    /// - Parameters:
    ///   - canonical: a target in canonical form.
    ///   - originLength: the length of the origin with which it begins.
    init(canonical: String, originLength: Int) {
        (target, length) = (canonical, originLength)
        var text = canonical
        hash = text.withUTF8 { bytes in
            let origin = UnsafeRawBufferPointer(
                rebasing: UnsafeRawBufferPointer(bytes)[..<min(originLength, bytes.count)]
            )
            return Int(truncatingIfNeeded: HeadHash.of(origin, seed: CountedOrigin.seed))
        }
    }

    private static let seed = UInt64.random(in: .min ... .max)

    /// Scheme, host and port; computed on each access.
    var name: String { String(decoding: target.utf8.prefix(length), as: UTF8.self) }
}

/// Counts what happens to one call in a cache: for which origin, and when.
struct CallMetrics: Sendable {
    private let meter: CacheMeter
    private let origin: CountedOrigin?
    private let stripe: Int
    private let clock: any HoldfastClock
    private let begun: MonotonicInstant

    /// - Parameter target: nil for events without an origin.
    init(_ meter: CacheMeter, target: TargetURI?, history: LookupHistory, clock: any HoldfastClock) {
        self.meter = meter
        origin = target.map { CountedOrigin(of: $0) }
        stripe = history.stripe
        self.clock = clock
        begun = history.begun
    }

    /// Counts the request itself.
    func arrive() {
        meter.arrive(from: origin, in: begun.minute, stripe: stripe)
    }

    func count(_ change: (inout CacheStatistics) -> Void) {
        meter.count(for: origin, in: clock.now.minute, stripe: stripe, change)
    }

    /// Counts a decision by its reason, together with what else it changes.
    func count(_ decision: CacheDecision, change: (inout CacheStatistics) -> Void) {
        count { counts in
            counts.reasons[decision.reason, default: 0] += 1
            change(&counts)
        }
    }

    /// Counts a hit, its reason if it is stale, and the time that it saved the caller.
    ///
    /// - Parameter delay: how long the origin had taken to answer with what is stored.
    func count(_ hit: HitKind, reason: CacheReason, delay: Duration) {
        let now = clock.now
        let saved = max(.zero, min(delay, CallMetrics.longestDelay) - begun.duration(to: now))
        meter.count(for: origin, in: now.minute, stripe: stripe) { counts in
            if hit != .onError { counts.timeSaved += saved }
            switch hit {
            case .fresh: return counts.hits += 1
            case .stale: counts.staleHits += 1
            case .revalidating: counts.revalidatingHits += 1
            case .onError: counts.staleOnError += 1
            }
            counts.reasons[reason, default: 0] += 1
        }
    }

    /// No origin really takes longer, but it can look so if a clock was set between sending and receiving.
    static var longestDelay: Duration { .milliseconds(longestDelayMilliseconds) }
    static var longestDelayMilliseconds: Int64 { 60_000 }

    /// Counts a response that is not stored.
    func count(notStored reason: CacheReason) {
        count { $0.notStored[reason, default: 0] += 1 }
    }

    /// Counts bytes that the caller got.
    func count(_ bytes: Int, bodySource: BodySource) {
        count { counts in
            switch bodySource {
            case .hit: counts.hitBytes += bytes
            case .staleOnError: counts.staleOnErrorBytes += bytes
            case .revalidated: counts.revalidatedBytes += bytes
            case .collapsed: counts.collapsedBytes += bytes
            case .network: counts.networkBytes += bytes
            }
        }
    }
}

/// The kinds of hits that are counted separately.
enum HitKind: Sendable {
    case fresh
    case stale
    case revalidating
    case onError

    var isStale: Bool { self != .fresh }
}

/// Where a caller's body bytes came from.
enum BodySource: Sendable {
    case hit
    case staleOnError
    case revalidated
    case collapsed
    case network
}

extension StoredResponse {
    /// How long the origin took to answer with it or confirm it, up to the head; negative if the clock was set back.
    var delay: Duration { .milliseconds(requestTime.millisecondsUntil(responseTime)) }
}

extension MonotonicInstant {
    /// The minute on the clock's timeline.
    var minute: Int64 {
        let seconds = sinceOrigin.components.seconds
        return seconds >= 0 ? seconds / 60 : (seconds - 59) / 60
    }
}
