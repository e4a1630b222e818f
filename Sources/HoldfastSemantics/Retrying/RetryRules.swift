// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The rules of a retrier: how often to retry, how long to wait, what the server may ask for, and what may be sent twice.
///
/// Each property has a default; the presets (``default``, ``strict``, ``patient``, ``interactive``, ``gateway``, ``never``) are
/// starting points. Four attempts are more than RFC 9110 §9.2.2 suggests for a client by itself; backoff and a budget make up
/// for it. ``validate()`` rejects values that make no sense.
public struct RetryRules: Sendable, Hashable {
    // MARK: How often

    /// How many attempts a call may make, the first included; 4 by default, 1 to 1,000. With 1, nothing is sent twice.
    public var maxAttempts = 4

    /// Whether immediate resends (after a stale connection, a request that the server refused to process, 421, 425 and 417)
    /// count as attempts; false by default: each call may have one of each kind in addition to ``maxAttempts``.
    public var countsFreeResends = false

    /// The waits between attempts; 100 ms, 200 ms, … up to 20 s with full jitter by default.
    public var backoff = Backoff()

    /// The waits after the server asked for fewer requests (429, 503, 413 with Retry-After); from 1 s by default.
    public var throttlingBackoff = Backoff(base: .seconds(1))

    /// How many retries the calls to one origin may make together; ``RetryBudget/pool`` by default.
    public var budget = RetryBudget.pool

    /// Whether a retry that the budget refuses waits for its turn, up to ``maxParking``, instead of being dropped; false by
    /// default.
    ///
    /// If it is false, a retry waits up to 1 s for its turn in the ``RetryBudget/pool`` while retries fail (while only its places
    /// are taken, until its deadline or ``maxParking``), and does not wait for other budgets.
    public var parks = false

    /// The longest that a retry waits for its turn while retries fail if ``parks`` is true, and for a free place if it has no
    /// deadline; 60 s by default.
    public var maxParking: Duration = .seconds(60)

    /// How many calls to one origin may wait at a closed gate or for the budget; 1,000 by default. Further ones fail at once.
    public var maxWaiting = 1000

    // MARK: Whom to obey

    /// Whether Retry-After is obeyed (RFC 9110 §10.2.3), by retries and by the gate; true by default.
    public var obeysRetryAfter = true

    /// The longest wait that a server may ask for; 60 s by default. A longer one ends the call at once rather than being
    /// shortened.
    public var maxServerDelay: Duration = .seconds(60)

    /// Whether Retry-After also holds back calls other than the one that got it; true by default.
    ///
    /// A 429 holds back the caller's other calls to the origin until a probe is answered. A 503 holds back those to its
    /// resource, from the second in a row, and those to the whole origin if several resources answer like this. If false, all
    /// gates stay open, including those of ``obeysRateLimit``.
    public var closesGate = true

    /// Whether a RateLimit field that says that nothing is left closes the gate of its resource before a 429 does, and delays a
    /// retry if there is no Retry-After; true by default.
    public var obeysRateLimit = true

    /// Which vendor-specific fields are read; none by default.
    public var vendorHints: VendorHints = []

    /// Whether the rate of requests is learned from throttling (the adaptive mode of the AWS SDKs); false by default.
    public var pacesAdaptively = false

    // MARK: What may be sent twice

    /// Whether this is a gateway, which must not resend requests that are not idempotent (RFC 9110 §9.2.2); false by default.
    ///
    /// Declarations, keys and other rules do not override this; requests that were certainly not processed are still sent
    /// again.
    public var isGateway = false

    /// The methods of requests that are sent again even if the server may have acted; nil, the default: the idempotent ones.
    ///
    /// A request that was certainly not processed is sent again whatever its method. A gateway removes the methods that are
    /// missing here from its own, and does not add any.
    public var repeatableMethods: Set<RequestMethod>?

    /// Whether requests that are not idempotent are sent again after 429, 503 and 413 with Retry-After; false by default.
    public var retriesUnsafeWhenThrottled = false

    /// Whether requests that are not idempotent are sent again when a reused connection was closed before any byte of an
    /// answer; false by default, because the server may have acted (RFC 9110 §9.2.2 calls it the riskier approach).
    public var retriesUnsafeOnStaleSocket = false

    /// Further statuses, of 400 or more, that count as temporary failures; none by default. A 422 to an Idempotency-Key is
    /// still final: the key was used with other content.
    public var retryableStatuses: Set<StatusCode> = []

    /// Statuses that are final although they would be retried; none by default. Overrides ``retryableStatuses``.
    public var finalStatuses: Set<StatusCode> = []

    /// Whether POST and PATCH requests are given an Idempotency-Key, one for all attempts of a call; false by default.
    /// Set it if the server is known to honor the key: such requests then count as idempotent.
    public var mintsIdempotencyKey = false

    /// The most bytes of a one-shot body that are kept so that it can be sent again; 64 KiB by default, 0 keeps nothing.
    public var replayLimit = 64 << 10

    // MARK: Time

    /// The time that a call may take until it returns, with its content where the call returns that, if neither it nor its pipeline
    /// sets a limit; nil, the default: no limit.
    public var callTimeout: Duration?

    /// The time that one attempt may take up to its response head; nil, the default: that of the pipeline's configuration.
    public var attemptTimeout: Duration?

    /// The least time that an attempt needs: a retry that would have less is not begun; 0 by default.
    public var minimumAttemptTime: Duration = .zero

    /// Whether a call waits for the network if the machine is offline; false by default. Time offline does not use up attempts.
    public var waitsForConnectivity = false

    // MARK: Layers

    /// Whether a failure that a lower layer has already retried is final here; true by default.
    public var respectsInnerRetries = true

    /// The field that tells the server the number of the attempt, from the second on; nil, the default: none.
    public var attemptField: FieldName?

    /// Whether a request that already has the attempt field (`x-retry-attempt` if ``attemptField`` is nil) is left to its
    /// sender to retry, and so makes one attempt; false by default.
    public var leavesRetriesToCaller = false

    /// The field that tells the server how many milliseconds are left; nil, the default: none.
    public var timeLeftField: FieldName?

    // MARK: Parts

    /// Whether a response body whose connection broke is resumed with Range and If-Range, if the response has a strong ETag
    /// (RFC 9110 §13.1.5); false by default.
    ///
    /// At most three times for each body, after the waits of ``backoff``, within ``budget``, and never if ``maxAttempts`` is 1.
    /// The reader sees one body, or the failure that broke it.
    public var resumesBodies = false

    /// When a second copy of a slow request is sent; nil, the default: never.
    ///
    /// The rules of the pipeline's factory decide whether and how it is hedged at all; those of a single call
    /// (`CallOptions.retryRules`, or of its own `CallOptions.retrierFactory`) can only exclude that call, with nil here or a
    /// ``maxAttempts`` of 1. A factory without rules, such as `.never`, excludes it too.
    public var hedging: HedgeRules?

    /// When attempts are held back because most of them fail; nil, the default: never.
    ///
    /// An open circuit ends a call at once with ``StopReason/circuitOpen``, unless ``parks`` is true. The rules of the
    /// pipeline's factory decide whether there is one; those of a single call do not change it.
    public var circuit: CircuitRules?

    /// The defaults.
    public init() {}

    /// Creates rules with parameters for what is commonly changed.
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

    /// Four attempts, full jitter from 100 ms, and the pool budget.
    public static let `default` = RetryRules()

    /// One retry and no more, as in RFC 9110 §9.2.2.
    ///
    /// The resend after a stale connection counts as that retry.
    public static let strict: RetryRules = {
        var rules = RetryRules(maxAttempts: 2)
        rules.countsFreeResends = true
        return rules
    }()

    /// For work that can wait: many attempts, and a retry waits up to a minute for its turn instead of being dropped.
    public static let patient: RetryRules = {
        var rules = RetryRules(maxAttempts: 50)
        rules.parks = true
        rules.budget = .patientPool
        return rules
    }()

    /// For a person who is waiting: short waits, an end within 10 s, and no retry if the server asks for a wait of more than 2
    /// s.
    ///
    /// An attempt may take 4 s and the whole call 10 s, if neither the call nor its pipeline sets another limit.
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

    /// For a gateway: one retry, only of idempotent requests, and none if the client retries itself.
    ///
    /// A request that was certainly not processed is sent again whatever its method (RFC 9110 §9.2.2).
    public static let gateway: RetryRules = {
        var rules = RetryRules(maxAttempts: 2)
        rules.countsFreeResends = true
        rules.isGateway = true
        rules.leavesRetriesToCaller = true
        rules.replayLimit = 0
        return rules
    }()

    /// One attempt. A closed gate still holds back calls that would be refused.
    public static let never = RetryRules(maxAttempts: 1)

    /// Rejects values that make no sense.
    ///
    /// Rules that contradict each other are accepted: ``isGateway`` overrides what other rules allow, ``finalStatuses``
    /// overrides ``retryableStatuses``.
    ///
    /// - Throws: ``RetryRulesError`` for the first such value.
    public func validate() throws(RetryRulesError) {
        try check("maxAttempts", value: maxAttempts, complaint: "is not a number of attempts; use 1 to 1000") {
            1...1000 ~= $0
        }
        try backoff.validate(as: "backoff")
        try throttlingBackoff.validate(as: "throttlingBackoff")
        if let problem = budget.problem { throw RetryRulesError("budget", message: problem) }
        try validateTimes()
        try check("maxWaiting", value: maxWaiting, complaint: "is not a number of calls; use 0 or more") { $0 >= 0 }
        try check("replayLimit", value: replayLimit, complaint: "is not a number of bytes; use 0 or more") { $0 >= 0 }
        for status in retryableStatuses.sorted() {
            try check(
                "retryableStatuses",
                value: status,
                complaint: "is not a failure, so nothing asks about it; use statuses of 400 or more"
            ) {
                $0.rawValue >= 400
            }
        }
        if let timeLeftField {
            try check("timeLeftField", value: timeLeftField, complaint: "is also the attemptField; use another name") {
                $0 != attemptField
            }
        }
        try hedging?.validate()
        try circuit?.validate()
    }

    private func validateTimes() throws(RetryRulesError) {
        try check("maxParking", value: maxParking, complaint: "is not a wait; use 0 s or more") { $0 >= .zero }
        if parks {
            try check(
                "maxParking",
                value: maxParking,
                complaint: "does not let a retry wait; use more, or set parks to false"
            ) {
                $0 > .zero
            }
        }
        try check("maxServerDelay", value: maxServerDelay, complaint: "is not a wait; use 0 s or more") { $0 >= .zero }
        try check(
            "minimumAttemptTime",
            value: minimumAttemptTime,
            complaint: "is not a time for an attempt; use 0 s or more"
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

/// A value of the rules that makes no sense, and what to set instead.
public struct RetryRulesError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The name of the property, as written in ``RetryRules``, such as `hedging.percentile`.
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
        try check("\(name).base", value: base, complaint: "is not a wait; use 0 s or more") { $0 >= .zero }
        try check(
            "\(name).multiplier",
            value: multiplier,
            complaint: "does not let waits grow; use a finite number of 1 or more"
        ) {
            $0 >= 1 && $0.isFinite
        }
        try check("\(name).cap", value: cap, complaint: "is less than the base of \(base); use that or more") {
            $0 >= base
        }
        try check("\(name).floor", value: floor, complaint: "is not a wait; use 0 s or more") { $0 >= .zero }
        try check("\(name).floor", value: floor, complaint: "is more than the cap of \(cap); use that or less") {
            $0 <= cap
        }
    }
}

extension HedgeRules {
    fileprivate func validate() throws(RetryRulesError) {
        try check(
            "hedging.percentile",
            value: percentile,
            complaint: "is not a share of answers; use 0.5 up to but not including 1"
        ) {
            0.5..<1 ~= $0
        }
        try check("hedging.maxCopies", value: maxCopies, complaint: "is not a number of copies; use 2 to 5") {
            2...5 ~= $0
        }
        try check("hedging.minimumDelay", value: minimumDelay, complaint: "is not a wait; use 0 s or more") {
            $0 >= .zero
        }
        try check(
            "hedging.minimumSamples",
            value: minimumSamples,
            complaint: "is not a number of answers; use 1 or more"
        ) { $0 >= 1 }
        try check(
            "hedging.maxExtraLoad",
            value: maxExtraLoad,
            complaint: "is not a share of the attempts; use more than 0 and at most 1"
        ) {
            $0 > 0 && $0 <= 1
        }
        guard let fixedDelay else { return }
        try check("hedging.fixedDelay", value: fixedDelay, complaint: "is not a wait; use 0 s or more, or nil") {
            $0 >= .zero
        }
    }
}

extension CircuitRules {
    fileprivate func validate() throws(RetryRulesError) {
        try check(
            "circuit.failureRatio",
            value: failureRatio,
            complaint: "is not a share of failures; use more than 0 and at most 1"
        ) {
            $0 > 0 && $0 <= 1
        }
        try check("circuit.window", value: window, complaint: "is not a duration; use more than 0 s") { $0 > .zero }
        try check(
            "circuit.minimumAttempts",
            value: minimumAttempts,
            complaint: "is not a number of attempts; use 1 or more"
        ) { $0 >= 1 }
        try check("circuit.openTime", value: openTime, complaint: "does not hold anything back; use more than 0 s") {
            $0 > .zero
        }
        try check("circuit.probes", value: probes, complaint: "is not a number of probes; use 1 or more") { $0 >= 1 }
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
