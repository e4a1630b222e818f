// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastSemantics

/// The origin of a target, as counters know it.
struct CountedOrigin: Sendable {
    let hash: Int
    private let target: TargetURI

    init(of target: TargetURI) {
        hash = target.originHash
        self.target = target
    }

    /// Scheme, host and port; made at each reading.
    var name: String { target.origin }
}

/// Counts what becomes of one call at a cache: to whose origin, and when.
struct CallTally: Sendable {
    private let meter: CacheMeter
    private let origin: CountedOrigin?
    private let stripe: Int
    private let clock: any HoldfastClock
    private let begun: MonotonicInstant

    /// - Parameter target: nil for what belongs to no origin.
    init(_ meter: CacheMeter, _ target: TargetURI?, _ trail: LookTrail, _ clock: any HoldfastClock) {
        self.meter = meter
        origin = target.map { CountedOrigin(of: $0) }
        stripe = trail.stripe
        self.clock = clock
        begun = trail.begun
    }

    /// Counts the request itself.
    func arrive() {
        meter.arrive(from: origin, in: begun.minute, stripe: stripe)
    }

    func count(_ change: (inout CacheStatistics) -> Void) {
        meter.count(for: origin, in: clock.now.minute, stripe: stripe, change)
    }

    /// Counts a decision by its reason, together with what else it changes.
    func count(_ decision: CacheDecision, _ change: (inout CacheStatistics) -> Void) {
        count { counts in
            counts.reasons[decision.reason, default: 0] += 1
            change(&counts)
        }
    }

    /// Counts a hit, its reason where it is stale, and the time it spared the caller.
    ///
    /// - Parameter delay: how long the origin had taken to answer with what is stored.
    func count(_ hit: HitKind, _ reason: CacheReason, delay: Duration) {
        let now = clock.now
        let saved = max(.zero, min(delay, CallTally.longestDelay) - begun.duration(to: now))
        meter.count(for: origin, in: now.minute, stripe: stripe) { counts in
            counts.timeSaved += saved
            switch hit {
            case .fresh: return counts.hits += 1
            case .stale: counts.staleHits += 1
            case .revalidating: counts.revalidatingHits += 1
            case .error: counts.errorHits += 1
            }
            counts.reasons[reason, default: 0] += 1
        }
    }

    /// No origin takes longer in earnest, while a clock that was set between sending and receiving can make it look so.
    static var longestDelay: Duration { .seconds(60) }

    /// Counts a response that is not stored.
    func count(notStored reason: CacheReason) {
        count { $0.notStored[reason, default: 0] += 1 }
    }

    /// Counts bytes that the caller was given.
    func count(_ bytes: Int, _ way: DeliveryWay) {
        count { counts in
            switch way {
            case .hit: counts.hitBytes += bytes
            case .revalidated: counts.revalidatedBytes += bytes
            case .collapsed: counts.collapsedBytes += bytes
            case .network: counts.networkBytes += bytes
            }
        }
    }
}

/// The kinds of hits that are counted apart.
enum HitKind: Sendable {
    case fresh
    case stale
    case revalidating
    case error

    var isStale: Bool { self != .fresh }
}

/// By which way body bytes came to a caller.
enum DeliveryWay: Sendable {
    case hit
    case revalidated
    case collapsed
    case network
}

extension StoredResponse {
    /// How long the origin took to answer with it, or to confirm it, up to the head; negative where the clock was set back.
    var delay: Duration { .milliseconds(requestTime.millisecondsUntil(responseTime)) }
}

extension MonotonicInstant {
    /// The minute of the clock's time line.
    var minute: Int64 {
        let seconds = sinceOrigin.components.seconds
        return seconds >= 0 ? seconds / 60 : (seconds - 59) / 60
    }
}
