// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import HoldfastSemantics
private import HoldfastStorage
private import Synchronization

/// What a cache did: since it was made, in a window of time, or for one origin; docs/measuring-hit-rates.md defines every figure.
///
/// Each request that reached the cache is exactly one of: hit, stale hit (accepted, or while revalidating), stale on error,
/// revalidated, collapsed, miss, bypass; or still in progress.
public struct CacheStatistics: Sendable, Hashable {
    /// Calls (hops, where redirects were followed) that reached the cache. A call whose acceptance refuses a stored response counts
    /// as the hit, and once more as the bypass that follows.
    public internal(set) var requests = 0
    /// Answered from the store, fresh, without asking the origin.
    public internal(set) var hits = 0
    /// Answered from the store although stale, because the caller accepts that.
    public internal(set) var staleHits = 0
    /// Answered from the store although stale, while a revalidation ran in the background.
    public internal(set) var revalidatingHits = 0
    /// Answered from the store although stale, because the origin failed, could not be reached, or took too long; these are not
    /// hits.
    public internal(set) var staleOnError = 0
    /// Answered with a stored body after the origin said 304.
    public internal(set) var revalidated = 0
    /// Answered by the exchange of another call.
    public internal(set) var collapsed = 0
    /// Looked up and not answered from the store.
    public internal(set) var misses = 0
    /// Not looked up: another method, `reload`, a URL that cannot be a key.
    public internal(set) var bypasses = 0
    /// Responses whose storing was completed.
    public internal(set) var stored = 0
    /// Store failures that were treated as misses.
    public internal(set) var storeFailures = 0
    /// Revalidations begun in the background, including those that failed.
    public internal(set) var backgroundRevalidations = 0
    public internal(set) var backgroundFailures = 0
    /// How often each reason decided, except for fresh hits: why the origin was asked, or why a stale response was used.
    public internal(set) var reasons: [CacheReason: Int] = [:]
    /// How often each reason kept a response from being stored.
    public internal(set) var notStored: [CacheReason: Int] = [:]
    /// Body bytes delivered by hits, stale ones included.
    public internal(set) var hitBytes = 0
    /// Body bytes delivered by stale responses that replaced a failure.
    public internal(set) var staleOnErrorBytes = 0
    /// Body bytes delivered from the store after a 304.
    public internal(set) var revalidatedBytes = 0
    /// Body bytes delivered from the exchanges of other calls.
    public internal(set) var collapsedBytes = 0
    /// Body bytes delivered from the network to calls that were looked up.
    public internal(set) var networkBytes = 0
    /// The waiting time that hits, including stale ones, saved: for each, the time that the origin took to answer with the
    /// stored response, minus the time that the hit took.
    ///
    /// The origin's time is that from sending the request to the response head, in the exchange that fetched the stored
    /// response or last confirmed it. Each hit counts at least zero and at most a minute, since the clock may have been set in
    /// between. Hits that memory answers at once are not measured and add nothing.
    public internal(set) var timeSaved: Duration = .zero

    /// All zero.
    public init() {}

    /// Body bytes that came from the store.
    public var bytesFromStore: Int { hitBytes + staleOnErrorBytes + revalidatedBytes }

    /// Body bytes that callers got without a transfer of their own: from the store, or from the exchanges of other calls.
    public var bytesSaved: Int { bytesFromStore + collapsedBytes }

    /// Hits, including stale ones, but not responses that replaced a failure, since the origin was asked.
    public var allHits: Int { hits + staleHits + revalidatingHits }

    /// The share of hits, including stale ones, in all requests that were looked up; 0 if there were none.
    public var hitRatio: Double { ratio(allHits, of: requests - bypasses) }

    /// The share of requests answered with a stored body after a 304, in all requests that were looked up; 0 if there were
    /// none.
    public var revalidationRatio: Double { ratio(revalidated, of: requests - bypasses) }

    /// The share of delivered body bytes that hits delivered; 0 when there were none.
    public var byteHitRatio: Double {
        ratio(hitBytes, of: hitBytes + staleOnErrorBytes + revalidatedBytes + collapsedBytes + networkBytes)
    }

    private func ratio(_ part: Int, of whole: Int) -> Double {
        whole > 0 ? Double(part) / Double(whole) : 0
    }
}

/// Adding counts, and counts between two times.
extension CacheStatistics {
    /// Adds a request that was a fresh hit.
    mutating func addHit(bytes: Int, saved: Duration) {
        requests += 1
        hits += 1
        hitBytes += bytes
        timeSaved += saved
    }

    static func += (left: inout CacheStatistics, right: CacheStatistics) {
        left.combine(right, join: { $0 &+= $1 }, joinTimes: { $0 += $1 })
    }

    /// The counts since `earlier`.
    static func - (left: CacheStatistics, earlier: CacheStatistics) -> CacheStatistics {
        var difference = left
        difference.combine(earlier, join: { $0 &-= $1 }, joinTimes: { $0 -= $1 })
        return difference
    }

    private mutating func combine(
        _ other: CacheStatistics,
        join: (inout Int, Int) -> Void,
        joinTimes: (inout Duration, Duration) -> Void
    ) {
        for figure in CacheStatistics.figures { join(&self[keyPath: figure], other[keyPath: figure]) }
        for (reason, count) in other.reasons { join(&reasons[reason, default: 0], count) }
        for (reason, count) in other.notStored { join(&notStored[reason, default: 0], count) }
        joinTimes(&timeSaved, other.timeSaved)
        reasons = reasons.filter { $0.value != 0 }
        notStored = notStored.filter { $0.value != 0 }
    }

    /// Every simple count.
    private static var figures: [WritableKeyPath<CacheStatistics, Int>] {
        [
            \.requests, \.hits, \.staleHits, \.revalidatingHits, \.staleOnError, \.revalidated, \.collapsed, \.misses,
            \.bypasses, \.stored, \.storeFailures, \.backgroundRevalidations, \.backgroundFailures, \.hitBytes,
            \.staleOnErrorBytes, \.revalidatedBytes, \.collapsedBytes, \.networkBytes,
        ]
    }
}

/// A cache's counts, in total and by origin, since it was made and recently.
///
/// Minutes are those of the pipelines' clock: a window consists of whole minutes and the current one. A body counts in the minute
/// in which it is read. Reading takes some microseconds and delays no call for longer.
extension HTTPCache {
    /// What was counted since the cache was made.
    public var statistics: CacheStatistics { meter.total }

    /// What was counted in the current minute and in as many before it as `duration` covers.
    ///
    /// - Parameters:
    ///   - duration: rounded up to whole minutes; at least one and at most 60 of them.
    ///   - now: by the clock of the pipelines that use the cache; the system's by default.
    public func statistics(
        overLast duration: Duration,
        now: MonotonicInstant = SystemClock().now
    ) -> CacheStatistics {
        meter.total(in: HTTPCache.minutes(duration, now: now, limit: MeterState.totalMinutes))
    }

    /// What was counted minute by minute, the oldest first, the current one last.
    ///
    /// - Parameters:
    ///   - duration: how far back, as in ``statistics(overLast:now:)``.
    ///   - now: as in ``statistics(overLast:now:)``.
    public func statisticsByMinute(
        overLast duration: Duration,
        now: MonotonicInstant = SystemClock().now
    ) -> [CacheStatistics] {
        meter.totals(in: HTTPCache.minutes(duration, now: now, limit: MeterState.totalMinutes))
    }

    /// What was counted for an origin since the cache was made; zeros if it is not counted separately.
    ///
    /// At least 64 origins are counted separately; ``originStatistics`` says which, if there are more.
    ///
    /// - Parameter origin: such as `https://example.com:8443`; a longer URL stands for its origin.
    public func statistics(of origin: String) -> CacheStatistics {
        HTTPCache.name(of: origin).map { meter.origin($0) } ?? CacheStatistics()
    }

    /// What was counted for an origin in the current minute and in as many before it as `duration` covers.
    ///
    /// - Parameters:
    ///   - origin: as in ``statistics(of:)``.
    ///   - duration: rounded up to whole minutes; at least one and at most 5 of them.
    ///   - now: as in ``statistics(overLast:now:)``.
    public func statistics(
        of origin: String,
        overLast duration: Duration,
        now: MonotonicInstant = SystemClock().now
    ) -> CacheStatistics {
        let minutes = HTTPCache.minutes(duration, now: now, limit: MeterState.originMinutes)
        return HTTPCache.name(of: origin).map { meter.origin($0, in: minutes) } ?? CacheStatistics()
    }

    /// What was counted for each origin since the cache was made: up to 64 origins, those with the most requests first, and
    /// then all others together.
    ///
    /// The sum is ``statistics``. If there are more origins, a new one replaces the one with the fewest recent requests
    /// (weights halve every ten minutes), whose counts are added to the others. An origin with more than one in 64 of the
    /// recent requests is never replaced. Requests whose URL cannot be a key, and store failures, also count under the others.
    public var originStatistics: [OriginStatistics] {
        let (each, other) = meter.origins
        return each.map { OriginStatistics(origin: $0.name, statistics: $0.counts) }
            + [OriginStatistics(origin: nil, statistics: other)]
    }

    private static func name(of origin: String) -> String? { (try? TargetURI(origin))?.origin }

    private static func minutes(_ duration: Duration, now: MonotonicInstant, limit: Int) -> Range<Int64> {
        let (seconds, attoseconds) = duration.components
        let whole = min(max(seconds, 0), Int64(limit) * 60)
        let minutes = min(max((whole + (attoseconds > 0 ? 1 : 0) + 59) / 60, 1), Int64(limit))
        return now.minute - minutes..<now.minute + 1
    }
}

/// What a cache did for one origin.
public struct OriginStatistics: Sendable, Hashable {
    /// Scheme, host and port, such as `https://example.com:8443`; nil: all origins that are not counted separately.
    public let origin: String?
    /// What was counted.
    public let statistics: CacheStatistics
}

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
