// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The state of one partition's circuit, changed by the ends of attempts at the given times.
///
/// While closed, it lets every attempt pass and counts how they end. When the share of failures in the sliding window reaches
/// `CircuitRules.failureRatio`, it opens and refuses all attempts. After the open time it is half open: probes pass, one failure
/// opens it again, and as many successes as there are probes close it. Times are durations since any fixed origin. Constant memory.
package struct CircuitState: Sendable {
    /// What to do with an attempt; closed.
    package enum Admission: Sendable, Hashable {
        /// Send it, and report its end with this pass, once.
        case go(CircuitPass)
        /// Do not send it; the time when another attempt may pass.
        case refuse(until: Duration)
    }

    /// How an attempt's end changed the circuit; closed.
    package enum Change: Sendable, Hashable {
        /// The circuit opened until this time.
        case opened(until: Duration)
        /// The circuit closed.
        case closed
    }

    private enum Phase: Sendable {
        case closed
        case open(until: Duration)
        case halfOpen(HalfOpen)
    }

    private struct HalfOpen: Sendable {
        var inFlight = 0
        var succeeded = 0
        var lastProbe: Duration = .zero
    }

    private let probes: Int
    private let openTime: Duration
    private let minimumAttempts: Int
    private let failuresPerMillion: Int
    private var counts: CircuitCounts
    private var phase = Phase.closed
    private var period = 0

    /// A closed circuit. Invalid rules count as the nearest valid ones.
    package init(_ rules: CircuitRules) {
        probes = max(1, rules.probes)
        openTime = max(.zero, rules.openTime)
        minimumAttempts = max(1, rules.minimumAttempts)
        // In millionths, because 0.3 times 10 must be exactly 3.
        failuresPerMillion = max(1, rules.failureRatio.millionths)
        counts = CircuitCounts(window: rules.window)
    }

    /// Whether all attempts pass.
    package var isClosed: Bool {
        if case .closed = phase { true } else { false }
    }

    /// Decides whether an attempt may be sent; every pass must be ended or given back exactly once.
    package mutating func admit(now: Duration) -> Admission {
        switch phase {
        case .closed:
            return .go(CircuitPass(period: period))
        case .open(let until):
            guard now >= until else { return .refuse(until: until) }
            period &+= 1
            phase = .halfOpen(HalfOpen(inFlight: 1, lastProbe: now))
            return .go(CircuitPass(period: period))
        case .halfOpen(var state):
            if state.inFlight + state.succeeded >= probes {
                // A probe that hangs must not keep the circuit half open forever: after another open time, one more may go.
                let next = state.lastProbe + openTime
                guard now >= next, now > state.lastProbe else { return .refuse(until: next) }
            }
            state.inFlight += 1
            state.lastProbe = now
            phase = .halfOpen(state)
            return .go(CircuitPass(period: period))
        }
    }

    /// Records how an attempt ended. Attempts that began before the circuit's last change do not count.
    package mutating func ended(_ pass: CircuitPass, succeeded: Bool, now: Duration) -> Change? {
        guard pass.period == period else { return nil }
        switch phase {
        case .open:
            return nil
        case .closed:
            counts.record(succeeded: succeeded, now: now)
            guard !succeeded, shouldOpen(now: now) else { return nil }
            return open(now: now)
        case .halfOpen(var state):
            guard succeeded else { return open(now: now) }
            state.inFlight = max(0, state.inFlight - 1)
            state.succeeded += 1
            phase = .halfOpen(state)
            guard state.succeeded >= probes else { return nil }
            phase = .closed
            period &+= 1
            counts.removeAll()
            return .closed
        }
    }

    /// Gives back the pass of an attempt that was cancelled or said nothing about the server: another may take its place.
    package mutating func giveBack(_ pass: CircuitPass) {
        guard pass.period == period, case .halfOpen(var state) = phase else { return }
        state.inFlight = max(0, state.inFlight - 1)
        phase = .halfOpen(state)
    }

    private func shouldOpen(now: Duration) -> Bool {
        let (failures, total) = counts.totals(now: now)
        guard total >= minimumAttempts else { return false }
        return failures.multipliedFullWidth(by: 1_000_000) >= total.multipliedFullWidth(by: failuresPerMillion)
    }

    private mutating func open(now: Duration) -> Change {
        let until = now + openTime
        phase = .open(until: until)
        period &+= 1
        counts.removeAll()
        return .opened(until: until)
    }
}

/// The permission for one attempt to pass a circuit.
package struct CircuitPass: Sendable, Hashable {
    /// The number of the circuit's changes when it was given.
    let period: Int
}

/// When attempts to a partition are held back because most of them fail.
public struct CircuitRules: Sendable, Hashable {
    /// The share of failures that opens the circuit; 0.5 by default, above 0 and at most 1.
    public var failureRatio = 0.5

    /// The length of the sliding window over which failures are counted; 10 s by default.
    public var window: Duration = .seconds(10)

    /// How many attempts must have ended within the window before the circuit can open; 20 by default.
    public var minimumAttempts = 20

    /// How long the circuit stays open before probes are let through; 5 s by default.
    public var openTime: Duration = .seconds(5)

    /// How many probes in a row must succeed to close the circuit, and how many may be in flight; 1 by default.
    public var probes = 1

    /// The defaults.
    public init() {}

    /// Whether the end of an attempt counts as a failure of the server; nil if it says nothing about the server.
    ///
    /// Failures are errors, 500, 502, 503, 504 and server errors with an unknown code (RFC 9110 §15). These are the failures that
    /// budgets count, except for 408 and 429, which show a server that protects itself. Cancellation and failures on this side,
    /// such as a request that cannot be sent or a certificate that is not trusted, do not count either way.
    package static func isFailure(_ outcome: AttemptOutcome) -> Bool? {
        if case .response(let head) = outcome, head.status == .requestTimeout || head.status == .tooManyRequests {
            return false
        }
        return outcome.serverSucceeded.map { !$0 }
    }
}

/// How attempts ended within a sliding window: ten counters in a ring, each for a tenth of the window.
struct CircuitCounts: Sendable {
    private struct Bucket: Sendable {
        var number: Int64 = .min
        var failures = 0
        var total = 0
    }

    private static let bucketCount = 10

    private let bucketLength: Duration
    private var buckets = [Bucket](repeating: Bucket(), count: bucketCount)

    init(window: Duration) { bucketLength = max(window, .milliseconds(1)) / CircuitCounts.bucketCount }

    mutating func record(succeeded: Bool, now: Duration) {
        let number = bucketNumber(now)
        let index = Int(number % Int64(CircuitCounts.bucketCount))
        if buckets[index].number != number { buckets[index] = Bucket(number: number) }
        buckets[index].total += 1
        if !succeeded { buckets[index].failures += 1 }
    }

    /// Failures and attempts of the last ten tenths, including the current one.
    func totals(now: Duration) -> (failures: Int, total: Int) {
        let newest = bucketNumber(now)
        let oldest = newest - Int64(CircuitCounts.bucketCount) + 1
        var sums = (failures: 0, total: 0)
        for bucket in buckets where (oldest...newest).contains(bucket.number) {
            sums.failures += bucket.failures
            sums.total += bucket.total
        }
        return sums
    }

    mutating func removeAll() {
        buckets = [Bucket](repeating: Bucket(), count: CircuitCounts.bucketCount)
    }

    private func bucketNumber(_ now: Duration) -> Int64 {
        // Times come from a clock that starts near 0; earlier times count for the first bucket.
        Int64(clamping: max(now, .zero).attoseconds / bucketLength.attoseconds)
    }
}
