// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// A value among rules that makes no sense, and what would.
public struct RetryRulesError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The name of the property, as it stands in ``RetryRules``, such as `hedging.percentile`.
    public var property: String
    /// What is wrong with its value and what to set instead.
    public var message: String

    /// An error about a property.
    public init(_ property: String, _ message: String) {
        self.property = property
        self.message = message
    }

    public var description: String { "\(property): \(message)" }
}

extension RetryRules {
    /// Refuses values that make no sense.
    ///
    /// Rules that overrule each other are no fault: ``isGateway`` beats what is allowed beside it, ``finalStatuses`` beats
    /// ``retryableStatuses``.
    ///
    /// - Throws: ``RetryRulesError`` for the first one found, which names it.
    public func validate() throws(RetryRulesError) {
        try check("maxAttempts", maxAttempts, "is no number of attempts; use 1 to 1000") { 1...1000 ~= $0 }
        try backoff.validate(as: "backoff")
        try throttlingBackoff.validate(as: "throttlingBackoff")
        if let problem = budget.problem { throw RetryRulesError("budget", problem) }
        try validateTimes()
        try check("maxWaiting", maxWaiting, "is no number of calls; use 0 or more") { $0 >= 0 }
        try check("replayLimit", replayLimit, "is no number of bytes; use 0 or more") { $0 >= 0 }
        for status in retryableStatuses.sorted() {
            try check("retryableStatuses", status, "is no failure and never asked about; use statuses of 400 or more") {
                $0.rawValue >= 400
            }
        }
        if let timeLeftField {
            try check("timeLeftField", timeLeftField, "is attemptField too; use another name") { $0 != attemptField }
        }
        try hedging?.validate()
        try circuit?.validate()
    }

    private func validateTimes() throws(RetryRulesError) {
        try check("maxParking", maxParking, "is no wait; use 0 s or more") { $0 >= .zero }
        if parks {
            try check("maxParking", maxParking, "does not let a retry wait; use more, or set parks to false") {
                $0 > .zero
            }
        }
        try check("maxServerDelay", maxServerDelay, "is no wait; use 0 s or more") { $0 >= .zero }
        try check("minimumAttemptTime", minimumAttemptTime, "is no time for an attempt; use 0 s or more") {
            $0 >= .zero
        }
        if let callTimeout {
            try check("callTimeout", callTimeout, "leaves a call no time; use more than 0 s, or nil") { $0 > .zero }
        }
        guard let attemptTimeout else { return }
        try check("attemptTimeout", attemptTimeout, "leaves an attempt no time; use more than 0 s, or nil") {
            $0 > .zero
        }
        try check("minimumAttemptTime", minimumAttemptTime, "is more than attemptTimeout allows; use less") {
            $0 <= attemptTimeout
        }
    }
}

extension Backoff {
    fileprivate func validate(as name: String) throws(RetryRulesError) {
        try check("\(name).base", base, "is no wait; use 0 s or more") { $0 >= .zero }
        try check("\(name).multiplier", multiplier, "does not let waits grow; use a finite number of 1 or more") {
            $0 >= 1 && $0.isFinite
        }
        try check("\(name).cap", cap, "is less than the base of \(base); use as much or more") { $0 >= base }
        try check("\(name).floor", floor, "is no wait; use 0 s or more") { $0 >= .zero }
        try check("\(name).floor", floor, "is more than the cap of \(cap); use as much or less") { $0 <= cap }
    }
}

extension HedgeRules {
    fileprivate func validate() throws(RetryRulesError) {
        try check("hedging.percentile", percentile, "is no share of slow answers; use 0.5 up to but not 1") {
            0.5..<1 ~= $0
        }
        try check("hedging.maxCopies", maxCopies, "is no number of copies; use 2 to 5") { 2...5 ~= $0 }
        try check("hedging.minimumDelay", minimumDelay, "is no wait; use 0 s or more") { $0 >= .zero }
        try check("hedging.minimumSamples", minimumSamples, "is no number of answers; use 1 or more") { $0 >= 1 }
        try check("hedging.maxExtraLoad", maxExtraLoad, "is no share of the attempts; use more than 0 and at most 1") {
            $0 > 0 && $0 <= 1
        }
        guard let fixedDelay else { return }
        try check("hedging.fixedDelay", fixedDelay, "is no wait; use 0 s or more, or nil") { $0 >= .zero }
    }
}

extension CircuitRules {
    fileprivate func validate() throws(RetryRulesError) {
        try check("circuit.failureRatio", failureRatio, "is no share of failures; use more than 0 and at most 1") {
            $0 > 0 && $0 <= 1
        }
        try check("circuit.window", window, "is no length; use more than 0 s") { $0 > .zero }
        try check("circuit.minimumAttempts", minimumAttempts, "is no number of attempts; use 1 or more") { $0 >= 1 }
        try check("circuit.openTime", openTime, "does not hold anything back; use more than 0 s") { $0 > .zero }
        try check("circuit.probes", probes, "is no number of probes; use 1 or more") { $0 >= 1 }
    }
}

private func check<Value>(
    _ property: String,
    _ value: Value,
    _ complaint: String,
    _ isFine: (Value) -> Bool
) throws(RetryRulesError) {
    guard !isFine(value) else { return }
    throw RetryRulesError(property, "\(value) \(complaint).")
}
