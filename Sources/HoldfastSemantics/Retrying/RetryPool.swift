// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The constants of a ``RetryPool``. They belong together: `start`, `gain` and the callers' patience were found by simulation, and
/// most other values miss a line (docs/decisions/retrying/0027-retry-pool.md).
package struct PoolRules: Sendable, Hashable {
    /// Tokens of an origin about which nothing is known; what the passing of time fills up to.
    var start = 3.0
    /// The most tokens; what successes fill up to.
    var capacity = 16.0
    /// What a success adds.
    var gain = 0.25
    /// What a second adds below ``start``; each pool draws its own, half to one and a half times as much.
    var refill = 0.05
    /// How many retries may be in flight at first, what a success adds, and the most.
    var (window, growth, limit) = (2.0, 1.0, 16.0)
    /// The backoff of an origin whose retries fail.
    var (base, cap) = (0.1, 5.0)
    /// How long after its end a backoff is remembered.
    var forget: Duration = .seconds(10)
    /// Calls that waited through a dry spell return over this share of its length, and over no longer than this.
    var (spread, longestSpread) = (0.5, 5.0)

    /// For callers who wait.
    package static let standard = PoolRules()

    /// For work that may wait.
    package static let patient: PoolRules = {
        var rules = PoolRules()
        (rules.refill, rules.limit, rules.spread, rules.longestSpread) = (0.1, 4, 1, 10)
        return rules
    }()

    /// How long a retry that is due waits while retries fail, unless its rules park.
    package static let patience: Duration = .seconds(1)
}

/// The retries that wait for permission, one value for each: what a pool remembers of them between two questions.
package struct RetryTurn: Sendable, Hashable {
    /// How long it waits while retries fail or tokens lack.
    let patience: Duration
    /// When it must have been permitted; later there is no time for an attempt.
    let end: Duration
    /// When it was first asked about.
    fileprivate var since: Duration?
    /// Its place in the release after a dry spell.
    fileprivate var release: Duration?

    /// A retry that is due.
    package init(patience: Duration, end: Duration) {
        self.patience = patience
        self.end = end
    }

    /// How long it waits while nothing succeeds.
    var patientUntil: Duration { min((since ?? .zero) + patience, end) }

    /// The first question begins the patience.
    mutating func begin(now: Duration) {
        if since == nil { since = now }
    }
}

/// The retries that the calls to one origin have in common: tokens that successes earn and failed retries cost, a window of
/// retries in flight, and one backoff for all while retries fail.
///
/// Permission is asked when a retry is due. A call that meets a passing failure is let through at once; where retries fail, one
/// at a time asks for all how the server is, and calls wait for its answer as long as they are patient.
package struct RetryPool: Sendable, Hashable {
    /// What a retry that is due is told.
    package enum Answer: Sendable, Hashable {
        case go
        case wait(until: Duration)
        case stop
    }

    private let rules: PoolRules
    /// Tokens a second.
    private let rate: Double
    private var refilled: Duration
    package private(set) var tokens: Double
    private var window: Double
    package private(set) var inFlight = 0
    /// How many rounds of retries failed since the last success; 0: retries are not held back.
    package private(set) var level = 0
    /// When the next retry may go, while retries fail.
    package private(set) var next: Duration = .zero
    /// When the level was last raised: what began before tells nothing new.
    private var raised: Duration?
    /// When retries began to fail.
    private var dry: Duration = .zero
    /// When they succeeded again, and over how long those who waited return.
    private var calm: Duration?
    private var span = 0.0

    package init(_ rules: PoolRules, now: Duration, using generator: inout some RandomNumberGenerator) {
        self.rules = rules
        // Clients that an outage drained at the same time must not all have a token again at the same time.
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

    /// Whether nothing is lost with it: a new pool has as much.
    func isRested(now: Duration) -> Bool {
        var copy = self
        copy.refill(now: now)
        return copy.inFlight == 0 && copy.level == 0 && copy.tokens >= rules.start
    }

    /// Whether a retry due after `delay` would find the origin known to be dead for longer than it waits.
    mutating func isHopeless(after delay: Duration, patience: Duration, now: Duration) -> Bool {
        refill(now: now)
        return level > 0 && next > now + delay + patience
    }

    /// Asks for a retry that is due; one that may go takes a place.
    mutating func ask(
        _ turn: inout RetryTurn,
        now: Duration,
        using generator: inout some RandomNumberGenerator
    ) -> Answer {
        refill(now: now)
        turn.begin(now: now)
        let patient = turn.patientUntil
        if level == 0, let calm, let since = turn.since, calm > since {
            // It waited through a dry spell, as others did: not all at once.
            let release = turn.release ?? min(patient, calm + .seconds(span * .random(in: 0..<1, using: &generator)))
            turn.release = release
            if now < release { return .wait(until: release) }
        }
        if level > 0, now < next { return next <= patient ? .wait(until: next) : .stop }
        if inFlight >= places {
            // While nothing fails places come free, and it is worth waiting for one.
            let until = level > 0 ? patient : turn.end
            return now < until ? .wait(until: until) : .stop
        }
        if tokens < 1 - RetryPool.tolerance {
            if inFlight > 0 { return now < patient ? .wait(until: patient) : .stop }
            let refill = now + .seconds((1 - tokens) / rate)
            return refill <= patient ? .wait(until: refill) : .stop
        }
        inFlight += 1
        return .go
    }

    /// Takes a token for a hedge, which takes no place; false while retries fail and where no token is left.
    mutating func hedge(now: Duration) -> Bool {
        refill(now: now)
        guard level == 0, tokens >= 1 - RetryPool.tolerance else { return false }
        tokens -= 1
        return true
    }

    /// Takes note of an attempt's end; `started` is nil for what was not permitted here, such as a call's first attempt.
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
            // One step a round: of retries that went together the first to fail says what the others say.
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

    /// Gives back the token of a hedge that was not made.
    mutating func giveBackHedge() {
        tokens = min(rules.capacity, tokens + 1)
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
