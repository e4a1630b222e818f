// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import Testing

@Suite struct RetryRulesValidationTests {
    /// A change to rules that makes no sense, the property it is about and the value that the message must show.
    struct Fault: Sendable, CustomTestStringConvertible {
        var property: String
        var shown: String
        var change: @Sendable (inout RetryRules) -> Void
        var testDescription: String { "\(property) \(shown)" }

        init(_ property: String, _ shown: String, _ change: @escaping @Sendable (inout RetryRules) -> Void) {
            self.property = property
            self.shown = shown
            self.change = change
        }
    }

    static let faults: [Fault] = [
        Fault("maxAttempts", "0") { $0.maxAttempts = 0 }, Fault("maxAttempts", "-1") { $0.maxAttempts = -1 },
        Fault("maxAttempts", "1001") { $0.maxAttempts = 1001 },
        Fault("backoff.base", "-1.0 seconds") { $0.backoff.base = .seconds(-1) },
        Fault("backoff.multiplier", "0.5") { $0.backoff.multiplier = 0.5 },
        Fault("backoff.multiplier", "nan") { $0.backoff.multiplier = .nan },
        Fault("backoff.multiplier", "inf") { $0.backoff.multiplier = .infinity },
        Fault("backoff.cap", "0.05 seconds") { $0.backoff.cap = .milliseconds(50) },
        Fault("backoff.floor", "-1.0 seconds") { $0.backoff.floor = .seconds(-1) },
        Fault("backoff.floor", "21.0 seconds") { $0.backoff.floor = .seconds(21) },
        Fault("throttlingBackoff.base", "-2.0 seconds") { $0.throttlingBackoff.base = .seconds(-2) },
        Fault("throttlingBackoff.multiplier", "-inf") { $0.throttlingBackoff.multiplier = -.infinity },
        Fault("throttlingBackoff.cap", "0.5 seconds") { $0.throttlingBackoff.cap = .milliseconds(500) },
        Fault("throttlingBackoff.floor", "30.0 seconds") { $0.throttlingBackoff.floor = .seconds(30) },
        Fault("budget", "share 0.0") { $0.budget = .ratio(0) },
        Fault("budget", "maxTokens 0") { $0.budget = .grpc(maxTokens: 0) },
        Fault("maxParking", "-1.0 seconds") { $0.maxParking = .seconds(-1) },
        Fault("maxParking", "0.0 seconds") {
            $0.parks = true
            $0.maxParking = .zero
        },
        Fault("maxWaiting", "-1") { $0.maxWaiting = -1 },
        Fault("maxServerDelay", "-1.0 seconds") { $0.maxServerDelay = .seconds(-1) },
        Fault("retryableStatuses", "202") { $0.retryableStatuses = [404, 202] },
        Fault("replayLimit", "-1") { $0.replayLimit = -1 },
        Fault("attemptTimeout", "0.0 seconds") { $0.attemptTimeout = .zero },
        Fault("attemptTimeout", "-1.0 seconds") { $0.attemptTimeout = .seconds(-1) },
        Fault("minimumAttemptTime", "-1.0 seconds") { $0.minimumAttemptTime = .seconds(-1) },
        Fault("minimumAttemptTime", "3.0 seconds") {
            $0.attemptTimeout = .seconds(2)
            $0.minimumAttemptTime = .seconds(3)
        },
        Fault("timeLeftField", "x-left") {
            $0.attemptField = "X-Left"
            $0.timeLeftField = "x-left"
        },
        Fault("hedging.percentile", "0.49") { $0.hedging = changed(HedgeRules()) { $0.percentile = 0.49 } },
        Fault("hedging.percentile", "1.0") { $0.hedging = changed(HedgeRules()) { $0.percentile = 1 } },
        Fault("hedging.percentile", "nan") { $0.hedging = changed(HedgeRules()) { $0.percentile = .nan } },
        Fault("hedging.maxCopies", "1") { $0.hedging = changed(HedgeRules()) { $0.maxCopies = 1 } },
        Fault("hedging.maxCopies", "6") { $0.hedging = changed(HedgeRules()) { $0.maxCopies = 6 } },
        Fault("hedging.minimumDelay", "-1.0 seconds") {
            $0.hedging = changed(HedgeRules()) { $0.minimumDelay = .seconds(-1) }
        },
        Fault("hedging.minimumSamples", "0") { $0.hedging = changed(HedgeRules()) { $0.minimumSamples = 0 } },
        Fault("hedging.maxExtraLoad", "0.0") { $0.hedging = changed(HedgeRules()) { $0.maxExtraLoad = 0 } },
        Fault("hedging.maxExtraLoad", "1.5") { $0.hedging = changed(HedgeRules()) { $0.maxExtraLoad = 1.5 } },
        Fault("hedging.fixedDelay", "-1.0 seconds") {
            $0.hedging = changed(HedgeRules()) { $0.fixedDelay = .seconds(-1) }
        },
        Fault("circuit.failureRatio", "0.0") { $0.circuit = changed(CircuitRules()) { $0.failureRatio = 0 } },
        Fault("circuit.failureRatio", "1.1") { $0.circuit = changed(CircuitRules()) { $0.failureRatio = 1.1 } },
        Fault("circuit.failureRatio", "nan") { $0.circuit = changed(CircuitRules()) { $0.failureRatio = .nan } },
        Fault("circuit.window", "0.0 seconds") { $0.circuit = changed(CircuitRules()) { $0.window = .zero } },
        Fault("circuit.minimumAttempts", "0") { $0.circuit = changed(CircuitRules()) { $0.minimumAttempts = 0 } },
        Fault("circuit.openTime", "0.0 seconds") { $0.circuit = changed(CircuitRules()) { $0.openTime = .zero } },
        Fault("circuit.probes", "0") { $0.circuit = changed(CircuitRules()) { $0.probes = 0 } },
    ]

    private static func changed<Rules>(_ rules: Rules, _ change: (inout Rules) -> Void) -> Rules {
        var rules = rules
        change(&rules)
        return rules
    }

    @Test("An invalid value is refused with a message that names it and says what to set", arguments: faults)
    func refuses(fault: Fault) throws {
        var rules = RetryRules()
        fault.change(&rules)
        let error = try #require(throws: RetryRulesError.self) { try rules.validate() }
        #expect(error.property == fault.property)
        #expect(error.message.hasPrefix("\(fault.shown) "), "\(error.message)")
        #expect(error.message.contains("; use ") && error.message.hasSuffix("."), "\(error.message)")
        #expect(error.description == "\(error.property): \(error.message)")
    }

    @Test("Values at the limits are valid, and so are rules that override each other")
    func limits() throws {
        var rules = RetryRules(backoff: Backoff(base: .zero, multiplier: 1, cap: .zero), maxAttempts: 1000)
        rules.throttlingBackoff = Backoff(base: .seconds(2), cap: .seconds(2), floor: .seconds(2))
        rules.maxParking = .zero
        rules.maxServerDelay = .zero
        rules.maxWaiting = 0
        rules.replayLimit = 0
        rules.attemptTimeout = .seconds(2)
        rules.minimumAttemptTime = .seconds(2)
        rules.retryableStatuses = [400, 429, 500]
        rules.finalStatuses = [200, 500]
        rules.isGateway = true
        rules.mintsIdempotencyKey = true
        rules.retriesUnsafeOnStaleSocket = true
        rules.attemptField = "x-attempt"
        rules.timeLeftField = "x-left"
        rules.hedging = Self.changed(HedgeRules()) { hedging in
            hedging.percentile = 0.5
            hedging.maxCopies = 5
            hedging.minimumDelay = .zero
            hedging.minimumSamples = 1
            hedging.maxExtraLoad = 1
            hedging.fixedDelay = .zero
        }
        rules.circuit = Self.changed(CircuitRules()) { circuit in
            circuit.failureRatio = 1
            circuit.minimumAttempts = 1
            circuit.openTime = .nanoseconds(1)
        }
        try rules.validate()
        rules.maxAttempts = 1
        rules.backoff = Backoff(base: .seconds(Int64.max), cap: .seconds(Int64.max))
        rules.timeLeftField = nil
        try rules.validate()
    }
}
