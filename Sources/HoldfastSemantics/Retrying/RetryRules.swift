// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The rules of a retrier: how often, how long, whom to obey, and what may be sent twice.
///
/// A value of vars with a default each; the presets (``default``, ``strict``, ``patient``, ``interactive``, ``gateway``,
/// ``none``) are starting points. Four attempts are more than RFC 9110 §9.2.2 asks of a client by itself; backoff and a
/// budget make up for it. ``validate()`` refuses values that make no sense.
public struct RetryRules: Sendable, Hashable {
    // MARK: How often

    /// How many attempts a call may make, the first included; 4 by default, 1 to 1,000. With 1 nothing is sent twice.
    public var maxAttempts = 4

    /// Whether resends that cure a failure at once (of a stale connection, of what the server refused to process, after
    /// 421, 425 and 417) count as attempts; false by default: one of each kind a call, outside ``maxAttempts``.
    public var countsFreeResends = false

    /// The waits between attempts; 100 ms, 200 ms, … up to 20 s with full jitter by default.
    public var backoff = Backoff()

    /// The waits after the server asked for less (429, 503, 413 with Retry-After); from 1 s by default.
    public var throttlingBackoff = Backoff(base: .seconds(1))

    /// How many retries the calls to one origin may make together; ``RetryBudget/pool`` by default.
    public var budget = RetryBudget.pool

    /// Whether a retry that the budget refuses waits its turn, for ``maxParking``, instead of being given up; false by default.
    ///
    /// Where it is false, a retry waits up to 1 s for its turn in the ``RetryBudget/pool``, and for no other budget.
    public var parks = false

    /// The longest a retry waits for its turn where the rules park, or where it has no deadline; 60 s by default.
    public var maxParking: Duration = .seconds(60)

    /// How many calls to one origin may wait at a closed gate or for the budget; 1,000 by default. Further ones fail at once.
    public var maxWaiting = 1000

    // MARK: Whom to obey

    /// Whether Retry-After is obeyed (RFC 9110 §10.2.3), by retries and by the gate; true by default.
    public var obeysRetryAfter = true

    /// The longest wait asked for by a server that is waited out; 60 s by default. A longer one ends the call at once rather
    /// than being cut.
    public var maxServerDelay: Duration = .seconds(60)

    /// Whether Retry-After holds back other calls than the one it was told; true by default.
    ///
    /// A 429 holds back the caller's other calls to the origin, until a probe is answered; a 503 those to its resource, from
    /// the second in a row, and all of the origin where several resources say so. False leaves all gates open,
    /// ``obeysRateLimit`` included.
    public var closesGate = true

    /// Whether a RateLimit field with nothing left closes the gate of its resource before a 429 does, and holds back a retry
    /// where there is no Retry-After; true by default.
    public var obeysRateLimit = true

    /// Which vendors' own fields are read; none by default.
    public var vendorHints: VendorHints = []

    /// Whether the rate of requests is learned from throttling (the adaptive mode of the AWS SDKs); false by default.
    public var pacesAdaptively = false

    // MARK: What may be sent twice

    /// Whether this is a gateway, which must not resend what is not idempotent (RFC 9110 §9.2.2); false by default.
    ///
    /// Nothing overrules it: no declaration, no key, no other rule; what certainly was not processed is still sent again.
    public var isGateway = false

    /// The methods of requests that are sent again although the server may have acted; nil, the default: the idempotent ones.
    ///
    /// What certainly was not processed is sent again whatever its method. A gateway takes out of its own methods those that are
    /// missing here and adds none.
    public var repeatableMethods: Set<RequestMethod>?

    /// Whether requests that are not idempotent are sent again after 429, 503 and 413 with Retry-After; false by default.
    public var retriesUnsafeWhenThrottled = false

    /// Whether requests that are not idempotent are sent again when a reused connection was closed before any byte of an
    /// answer; false by default, because the server may have acted (RFC 9110 §9.2.2 calls it the riskier approach).
    public var retriesUnsafeOnStaleSocket = false

    /// Further statuses, of 400 or more, that count as passing failures; none by default. A 422 to an Idempotency-Key is
    /// final all the same: the key was used with other content.
    public var retryableStatuses: Set<StatusCode> = []

    /// Statuses that are final although they would be retried; none by default. Wins over ``retryableStatuses``.
    public var finalStatuses: Set<StatusCode> = []

    /// Whether requests that are not idempotent are given an Idempotency-Key, one for all attempts of a call; false by
    /// default. Set it where the server is known to honour the key: such requests then count as idempotent.
    public var mintsIdempotencyKey = false

    /// The most bytes of a one-shot body that are kept so that it can be sent again; 64 KiB by default, 0 keeps nothing.
    public var replayLimit = 64 << 10

    // MARK: Time

    /// The time a call may take up to its response head, where neither it nor its pipeline limits it; nil, the default: none.
    public var callTimeout: Duration?

    /// The time one attempt may take up to its response head; nil, the default: as the pipeline is configured.
    public var attemptTimeout: Duration?

    /// The least time an attempt needs to make sense: no retry is begun that would have less; 0 by default.
    public var minimumAttemptTime: Duration = .zero

    /// Whether a call waits for the network to return where the machine is offline; false by default. The time offline
    /// costs no attempts.
    public var waitsForConnectivity = false

    // MARK: Layers

    /// Whether a failure that a layer beneath has retried already is final here; true by default.
    public var respectsInnerRetries = true

    /// The field that tells the server the number of the attempt, from the second on; nil, the default, sends none.
    public var attemptField: FieldName?

    /// Whether a request that bears the attempt field already (`x-retry-attempt` where ``attemptField`` is nil) is left to
    /// who sent it: one attempt; false by default.
    public var leavesRetriesToCaller = false

    /// The field that tells the server how many milliseconds are left; nil, the default, sends none.
    public var timeLeftField: FieldName?

    // MARK: Parts

    /// Whether a response body whose connection broke goes on by Range and If-Range, where the response has a strong ETag
    /// (RFC 9110 §13.1.5); false by default.
    ///
    /// At most three times a body, after the waits of ``backoff``, out of ``budget``, and never with one attempt alone. The
    /// reader sees one body, or the failure that broke it.
    public var resumesBodies = false

    /// When a second copy of a slow request is sent; nil, the default: never.
    ///
    /// The rules of the pipeline's factory decide whether and how it is hedged at all; those of a single call
    /// (`CallOptions.retryRules`) can only leave that call out, by nil here or a ``maxAttempts`` of 1.
    public var hedging: HedgeRules?

    /// When attempts are held back because most fail; nil, the default: never.
    ///
    /// An open circuit ends a call at once with ``StopReason/circuitOpen``, unless the rules park. The rules of the
    /// pipeline's factory decide whether there is one; those of a single call change nothing about it.
    public var circuit: CircuitRules?

    /// The defaults.
    public init() {}

    /// Rules that differ from the defaults in what is commonly changed.
    public init(
        backoff: Backoff = Backoff(),
        maxAttempts: Int = 4,
        maxServerDelay: Duration = .seconds(60),
        retriesUnsafeWhenThrottled: Bool = false
    ) {
        self.backoff = backoff
        self.maxAttempts = maxAttempts
        self.maxServerDelay = maxServerDelay
        self.retriesUnsafeWhenThrottled = retriesUnsafeWhenThrottled
    }

    /// Four attempts, full jitter from 100 ms, the pool.
    public static let `default` = RetryRules()

    /// One retry and no more, as RFC 9110 §9.2.2 has it.
    ///
    /// The resend that cures a stale connection counts as that retry.
    public static let strict: RetryRules = {
        var rules = RetryRules(maxAttempts: 2)
        rules.countsFreeResends = true
        return rules
    }()

    /// For work that may wait: many attempts, and a retry waits its turn, for a minute, instead of being given up.
    public static let patient: RetryRules = {
        var rules = RetryRules(maxAttempts: 50)
        rules.parks = true
        rules.budget = .patientPool
        return rules
    }()

    /// For somebody who looks on: short waits, an end within 10 s, and a server that asks for more than 2 s is not waited for.
    ///
    /// An attempt may take 4 s and the whole call 10 s, where neither the call nor its pipeline sets another limit.
    public static let interactive: RetryRules = {
        var rules = RetryRules(
            backoff: Backoff(base: .milliseconds(50), cap: .seconds(1)),
            maxAttempts: 3,
            maxServerDelay: .seconds(2)
        )
        rules.throttlingBackoff = Backoff(base: .milliseconds(200), cap: .seconds(1))
        rules.attemptTimeout = .seconds(4)
        rules.callTimeout = .seconds(10)
        return rules
    }()

    /// For a gateway: one retry, never of what is not idempotent, and none of what its client retries itself.
    ///
    /// What certainly was not processed is sent again whatever its method (RFC 9110 §9.2.2).
    public static let gateway: RetryRules = {
        var rules = RetryRules(maxAttempts: 2)
        rules.countsFreeResends = true
        rules.isGateway = true
        rules.leavesRetriesToCaller = true
        rules.replayLimit = 0
        return rules
    }()

    /// One attempt. A closed gate still holds back what would be refused.
    public static let none = RetryRules(maxAttempts: 1)

    /// Refuses values that make no sense.
    ///
    /// Rules that overrule each other are no fault: ``isGateway`` beats what is allowed beside it, ``finalStatuses`` beats
    /// ``retryableStatuses``.
    ///
    /// - Throws: ``RetryRulesError`` for the first one found, which names it.
    public func validate() throws(RetryRulesError) {
        try check("maxAttempts", value: maxAttempts, complaint: "is no number of attempts; use 1 to 1000") {
            1...1000 ~= $0
        }
        try backoff.validate(as: "backoff")
        try throttlingBackoff.validate(as: "throttlingBackoff")
        if let problem = budget.problem { throw RetryRulesError("budget", message: problem) }
        try validateTimes()
        try check("maxWaiting", value: maxWaiting, complaint: "is no number of calls; use 0 or more") { $0 >= 0 }
        try check("replayLimit", value: replayLimit, complaint: "is no number of bytes; use 0 or more") { $0 >= 0 }
        for status in retryableStatuses.sorted() {
            try check(
                "retryableStatuses",
                value: status,
                complaint: "is no failure and never asked about; use statuses of 400 or more"
            ) {
                $0.rawValue >= 400
            }
        }
        if let timeLeftField {
            try check("timeLeftField", value: timeLeftField, complaint: "is attemptField too; use another name") {
                $0 != attemptField
            }
        }
        try hedging?.validate()
        try circuit?.validate()
    }

    private func validateTimes() throws(RetryRulesError) {
        try check("maxParking", value: maxParking, complaint: "is no wait; use 0 s or more") { $0 >= .zero }
        if parks {
            try check(
                "maxParking",
                value: maxParking,
                complaint: "does not let a retry wait; use more, or set parks to false"
            ) {
                $0 > .zero
            }
        }
        try check("maxServerDelay", value: maxServerDelay, complaint: "is no wait; use 0 s or more") { $0 >= .zero }
        try check(
            "minimumAttemptTime",
            value: minimumAttemptTime,
            complaint: "is no time for an attempt; use 0 s or more"
        ) {
            $0 >= .zero
        }
        if let callTimeout {
            try check("callTimeout", value: callTimeout, complaint: "leaves a call no time; use more than 0 s, or nil")
            { $0 > .zero }
        }
        guard let attemptTimeout else { return }
        try check(
            "attemptTimeout",
            value: attemptTimeout,
            complaint: "leaves an attempt no time; use more than 0 s, or nil"
        ) {
            $0 > .zero
        }
        try check(
            "minimumAttemptTime",
            value: minimumAttemptTime,
            complaint: "is more than attemptTimeout allows; use less"
        ) {
            $0 <= attemptTimeout
        }
    }
}

/// A value among rules that makes no sense, and what would.
public struct RetryRulesError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The name of the property, as it stands in ``RetryRules``, such as `hedging.percentile`.
    public var property: String
    /// What is wrong with its value and what to set instead.
    public var message: String

    /// An error about a property.
    public init(_ property: String, message: String) {
        self.property = property
        self.message = message
    }

    public var description: String { "\(property): \(message)" }
}

extension Backoff {
    fileprivate func validate(as name: String) throws(RetryRulesError) {
        try check("\(name).base", value: base, complaint: "is no wait; use 0 s or more") { $0 >= .zero }
        try check(
            "\(name).multiplier",
            value: multiplier,
            complaint: "does not let waits grow; use a finite number of 1 or more"
        ) {
            $0 >= 1 && $0.isFinite
        }
        try check("\(name).cap", value: cap, complaint: "is less than the base of \(base); use as much or more") {
            $0 >= base
        }
        try check("\(name).floor", value: floor, complaint: "is no wait; use 0 s or more") { $0 >= .zero }
        try check("\(name).floor", value: floor, complaint: "is more than the cap of \(cap); use as much or less") {
            $0 <= cap
        }
    }
}

extension HedgeRules {
    fileprivate func validate() throws(RetryRulesError) {
        try check(
            "hedging.percentile",
            value: percentile,
            complaint: "is no share of slow answers; use 0.5 up to but not 1"
        ) {
            0.5..<1 ~= $0
        }
        try check("hedging.maxCopies", value: maxCopies, complaint: "is no number of copies; use 2 to 5") {
            2...5 ~= $0
        }
        try check("hedging.minimumDelay", value: minimumDelay, complaint: "is no wait; use 0 s or more") { $0 >= .zero }
        try check("hedging.minimumSamples", value: minimumSamples, complaint: "is no number of answers; use 1 or more")
        { $0 >= 1 }
        try check(
            "hedging.maxExtraLoad",
            value: maxExtraLoad,
            complaint: "is no share of the attempts; use more than 0 and at most 1"
        ) {
            $0 > 0 && $0 <= 1
        }
        guard let fixedDelay else { return }
        try check("hedging.fixedDelay", value: fixedDelay, complaint: "is no wait; use 0 s or more, or nil") {
            $0 >= .zero
        }
    }
}

extension CircuitRules {
    fileprivate func validate() throws(RetryRulesError) {
        try check(
            "circuit.failureRatio",
            value: failureRatio,
            complaint: "is no share of failures; use more than 0 and at most 1"
        ) {
            $0 > 0 && $0 <= 1
        }
        try check("circuit.window", value: window, complaint: "is no length; use more than 0 s") { $0 > .zero }
        try check(
            "circuit.minimumAttempts",
            value: minimumAttempts,
            complaint: "is no number of attempts; use 1 or more"
        ) { $0 >= 1 }
        try check("circuit.openTime", value: openTime, complaint: "does not hold anything back; use more than 0 s") {
            $0 > .zero
        }
        try check("circuit.probes", value: probes, complaint: "is no number of probes; use 1 or more") { $0 >= 1 }
    }
}

private func check<Value>(
    _ property: String,
    value: Value,
    complaint: String,
    isFine: (Value) -> Bool
) throws(RetryRulesError) {
    guard !isFine(value) else { return }
    throw RetryRulesError(property, message: "\(value) \(complaint).")
}
