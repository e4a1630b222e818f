// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The constants of a ``RetryPool``. They depend on each other: `start`, `gain` and the callers' patience were found by simulation,
/// and most other values miss a limit (docs/decisions/retrying/0027-retry-pool.md).
package struct PoolRules: Sendable, Hashable {
    /// Tokens of an unknown origin; time fills up to this.
    var start = 3.0
    /// The most tokens; successes fill up to this.
    var capacity = 16.0
    /// What a success adds.
    var gain = 0.25
    /// What a second adds below ``start``; each pool draws its own rate, half to one and a half times as much.
    var refill = 0.05
    /// How many retries may be in flight at first, how much a success adds, and the maximum.
    var (window, growth, limit) = (2.0, 1.0, 16.0)
    /// The backoff of an origin whose retries fail.
    var (base, cap) = (0.1, 5.0)
    /// How long a backoff is remembered after its end.
    var forget: Duration = .seconds(10)
    /// Calls that waited through an outage return over this share of its length, and over at most this long.
    var (spread, longestSpread) = (0.5, 5.0)

    /// For callers who wait.
    package static let standard = PoolRules()

    /// For work that may wait.
    package static let patient: PoolRules = {
        var rules = PoolRules()
        (rules.refill, rules.limit, rules.spread, rules.longestSpread) = (0.1, 4, 1, 10)
        return rules
    }()

    /// How long a due retry waits while retries fail, unless its rules park.
    package static let patience: Duration = .seconds(1)
}

/// A retry that waits for permission: what a pool remembers of it between two requests.
package struct RetryTurn: Sendable, Hashable {
    /// How long it waits while retries fail or tokens are lacking.
    let patience: Duration
    /// When it must have permission; later there is no time for an attempt.
    let end: Duration
    /// When it first asked; its patience lasts from then.
    var since: Duration = .zero
    /// When it may go after an outage.
    fileprivate var release: Duration?

    /// A retry that is due.
    package init(patience: Duration, end: Duration) {
        self.patience = patience
        self.end = end
    }

    /// Until when it waits while nothing succeeds.
    var patientUntil: Duration { min(since + patience, end) }
}

/// The retries that the calls to one origin share: tokens that successes earn and failed retries cost, a window of retries in
/// flight, and one common backoff while retries fail.
///
/// Permission is requested when a retry is due. After a temporary failure, a call may go at once. While retries fail, one at a time
/// tests the server for all, and calls wait for its answer as long as their patience lasts.
package struct RetryPool: Sendable, Hashable {
    private let rules: PoolRules
    /// Tokens per second.
    private let rate: Double
    private var refilled: Duration
    package private(set) var tokens: Double
    private var window: Double
    package private(set) var inFlight = 0
    /// How many hedges are in flight. They hold no token, since only failures cost one.
    private var hedges = 0
    /// How many rounds of retries failed since the last success; 0: retries are not held back.
    package private(set) var level = 0
    /// When the next retry may go, while retries fail.
    package private(set) var next: Duration = .zero
    /// When the level was last raised: retries that began earlier say nothing new.
    private var raised: Duration?
    /// When retries began to fail.
    private var dry: Duration = .zero
    /// When they succeeded again, and over how long the waiting calls return.
    private var calm: Duration?
    private var span = 0.0

    package init(_ rules: PoolRules, now: Duration, using generator: inout some RandomNumberGenerator) {
        self.rules = rules
        // Clients that an outage drained at the same time must not all get a token at the same time again.
        rate = rules.refill * Double.random(in: 0.5..<1.5, using: &generator)
        refilled = now
        tokens = rules.start
        window = rules.window
    }

    /// How many retries may be in flight.
    package var places: Int { level > 0 ? 1 : Int(window) }

    /// How many retries would be let through now.
    func balance(now: Duration) -> Int {
        var copy = self
        copy.refill(now: now)
        guard copy.level == 0 || now >= copy.next else { return 0 }
        return max(0, min(Int(copy.tokens + RetryPool.tolerance), copy.places - inFlight))
    }

    /// Whether it can be dropped without a loss: a new pool has as much.
    func isRested(now: Duration) -> Bool {
        var copy = self
        copy.refill(now: now)
        return copy.inFlight == 0 && copy.hedges == 0 && copy.level == 0 && copy.tokens >= rules.start
    }

    /// Whether a retry due after `delay` would find the origin known to be down for longer than it waits.
    mutating func isHopeless(after delay: Duration, patience: Duration, now: Duration) -> Bool {
        refill(now: now)
        return level > 0 && next > now + delay + patience
    }

    /// Asks for a due retry; one that may go takes a place.
    mutating func ask(
        _ turn: inout RetryTurn,
        cause: RetryCause,
        now: Duration,
        using generator: inout some RandomNumberGenerator
    ) -> RetryBudgetState.Answer {
        refill(now: now)
        let patient = turn.patientUntil
        if level == 0, let calm, calm > turn.since {
            // It waited through an outage, like others, so they must not all go at once.
            let release = turn.release ?? min(patient, calm + .seconds(span * .random(in: 0..<1, using: &generator)))
            turn.release = release
            if now < release { return .wait(until: release) }
        }
        if level > 0, now < next { return next <= patient ? .wait(until: next) : .stop }
        if inFlight >= places {
            // While nothing fails, places become free, so waiting for one makes sense.
            let until = level > 0 ? patient : turn.end
            return now < until ? .wait(until: until) : .stop
        }
        if tokens < 1 - RetryPool.tolerance {
            if inFlight > 0 { return now < patient ? .wait(until: patient) : .stop }
            let refill = now + .seconds((1 - tokens) / rate)
            return refill <= patient ? .wait(until: refill) : .stop
        }
        inFlight += 1
        return .go(RetryGrant(cause: cause, started: now))
    }

    /// Permits a hedge, which takes no place; false while retries fail, or if the failure of all hedges would leave no token for a
    /// retry.
    mutating func hedge(now: Duration) -> Bool {
        refill(now: now)
        guard level == 0, tokens >= Double(hedges + 2) - RetryPool.tolerance else { return false }
        hedges += 1
        return true
    }

    /// Records the end of a hedge, which costs a token if it failed.
    mutating func hedgeEnded(succeeded: Bool, now: Duration) {
        refill(now: now)
        hedges = max(0, hedges - 1)
        if !succeeded { tokens = max(0, tokens - 1) }
    }

    /// Records the end of an attempt; `started` is nil for attempts that were not permitted here, such as a call's first one.
    mutating func ended(
        started: Duration?,
        succeeded: Bool,
        now: Duration,
        using generator: inout some RandomNumberGenerator
    ) {
        refill(now: now)
        if started != nil { leave() }
        if succeeded {
            if level >= 2 {
                calm = now
                span = min(rules.longestSpread, rules.spread * (now - dry).doubleSeconds)
            }
            level = 0
            tokens = min(rules.capacity, tokens + rules.gain)
            if started != nil { window = min(rules.limit, window + rules.growth) }
        } else if let started {
            tokens = max(0, tokens - 1)
            window = max(1, window / 2)
            // One step for each round: the first failure of retries that were sent together counts for all of them.
            if let raised, started < raised { return }
            if level == 0 { dry = now }
            level += 1
            raised = now
            let ceiling = min(rules.cap, rules.base * Double(UInt64(1) << UInt64(min(level, 32))))
            next = now + .seconds(ceiling * .random(in: 0.5..<1, using: &generator))
        }
    }

    /// Gives back the place of a retry that was not made, or whose end says nothing.
    mutating func leave() {
        inFlight = max(0, inFlight - 1)
    }

    private mutating func refill(now: Duration) {
        if tokens < rules.start, now > refilled {
            tokens = min(rules.start, tokens + (now - refilled).doubleSeconds * rate)
        }
        refilled = max(refilled, now)
        if level > 0, now > next + rules.forget {
            level = 0
            window = max(window, rules.window)
        }
    }

    private static let tolerance = 1e-9
}
