// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import Testing

/// RETRY.md E0: every group of the vectors that names an algorithm of ours, with any parameters.
@Suite struct BackoffVectorTests {
    /// What a group's formula is among ours; the names of parameters are the vectors' own.
    private static let forms: [String: @Sendable (VectorParameters) -> Backoff?] = {
        var forms: [String: @Sendable (VectorParameters) -> Backoff?] = [:]
        let plain = ["exponential-none", "aws-simulator-exponential", "polly-exponential-none", "alamofire"]
        let full = [
            "full-jitter", "aws-simulator-full", "aws-sdk-standard-2.0", "aws-sdk-2.1-transient",
            "aws-sdk-2.1-dynamodb-transient", "aws-sdk-2.1-throttling", "swift-retry-full", "reqwest-retry-full",
        ]
        for (ids, jitter) in [(plain, Jitter.none), (full, .full), (["equal-jitter", "aws-simulator-equal"], .equal)] {
            for id in ids {
                forms[id] = { backoff($0, id == "alamofire" ? $0["scale_s"] : $0["base_s", "x_s", "min_s"], jitter) }
            }
        }
        forms["tenacity-exponential"] = { backoff($0, $0["multiplier"], .none, floor: $0["min_s"], growth: 2) }
        forms["reqwest-retry-bounded"] = { backoff($0, $0["min_s"], .full, floor: $0["min_s"].map { $0 / 2 }) }
        forms["grpc-a6"] = { backoff($0, $0["initialBackoff_s"], .proportional(0.2)) }
        forms["polly-constant-jitter"] = { backoff($0, $0["base_s"], .proportional(0.25), growth: 1) }
        forms["failsafe-jitterfactor"] = { backoff($0, $0["delay_s"], .proportional($0["jitterFactor"] ?? 0)) }
        forms["ahc-connect"] = { backoff($0, $0["start_s"], .proportional($0["jitter"] ?? 0)) }
        return forms
    }()

    private static func backoff(
        _ params: VectorParameters,
        _ base: Double?,
        _ jitter: Jitter,
        floor: Double? = nil,
        growth: Double? = nil
    ) -> Backoff? {
        guard let base else { return nil }
        return Backoff(
            base: .seconds(base),
            multiplier: growth ?? params["multiplier", "backoffMultiplier", "factor", "base"] ?? 2,
            cap: .seconds(params["cap_s", "max_s", "maxBackoff_s", "maxDelay_s"] ?? 1e9),
            floor: .seconds(floor ?? 0),
            jitter: jitter
        )
    }

    private static let series = (VectorFile.backoff?.stateless ?? []).filter { forms[$0.id] != nil }

    private static func isNear(_ delay: Duration, _ expected: Double, quantum: Double?) -> Bool {
        abs(delay.doubleSeconds - expected) <= max(1e-9, expected * 1e-9) + (quantum ?? 0)
    }

    /// The number by which ours calls a retry: from 0, but the simulator of AWS raises its first retry to 1.
    private static func number(_ vector: BackoffVectors.Case, of series: BackoffVectors.Series) -> Int {
        vector.retry - (series.id.hasPrefix("aws-simulator") ? 0 : series.firstRetry)
    }

    @Test("E0: stateless vectors", arguments: series)
    func stateless(series: BackoffVectors.Series) throws {
        let form = try #require(BackoffVectorTests.forms[series.id])
        let backoff = try #require(form(series.params))
        for vector in series.cases {
            let expected = try #require(vector.expected)
            // Failsafe's sample counts downwards.
            let sample = series.id == "failsafe-jitterfactor" ? 1 - (vector.sample ?? 0) : vector.sample ?? 0
            let retry = BackoffVectorTests.number(vector, of: series)
            let delay = backoff.delay(retry: retry, sample: sample)
            #expect(
                BackoffVectorTests.isNear(delay, expected, quantum: series.quantum),
                "n \(vector.retry) u \(sample): \(delay), not \(expected)"
            )
            var state = BackoffState()
            #expect(backoff.delay(retry: retry, sample: sample, state: &state) == delay)
            #expect(state == BackoffState(), "a kind without memory remembers")
        }
    }

    @Test(
        "E0: no retry number traps",
        arguments: [Jitter.none, .full, .equal, .decorrelated, .pollyV2, .proportional(1)]
    )
    func greatNumbers(jitter: Jitter) {
        let backoff = Backoff(multiplier: 1e300, jitter: jitter)
        var state = BackoffState()
        for retry in [0, 63, 64, 1023, 1024, 5000, 1_000_000, .max, .min, -1] {
            for sample in [0, 0.5, 0.999, 1, .nan, .infinity, -1] {
                let delays = [
                    backoff.delay(retry: retry, sample: sample),
                    backoff.delay(retry: retry, sample: sample, state: &state),
                ]
                #expect(delays.allSatisfy { $0 >= .zero && $0 <= .seconds(40) }, "n \(retry) u \(sample): \(delays)")
            }
        }
    }

    @Test(
        "Defect 3 of 15: a cap after the jitter gives another distribution",
        arguments: (VectorFile.backoff?.stateless ?? []).filter { $0.id == "aws-sdk-standard-2.0-smithy-swift" }
    )
    func capAfterJitter(series: BackoffVectors.Series) throws {
        let backoff = try #require(BackoffVectorTests.backoff(series.params, series.params["base_s"], .full))
        var atTheirCap = 0
        for vector in series.cases {
            let expected = try #require(vector.expected)
            let sample = vector.sample ?? 0
            let delay = backoff.delay(retry: vector.retry, sample: sample)
            let isCut = backoff.cap <= .seconds(expected)
            atTheirCap += isCut ? 1 : 0
            if isCut { #expect(delay < backoff.cap, "n \(vector.retry) u \(sample): the herd meets at the cap") }
        }
        #expect(atTheirCap > 0 || !VectorFile.isOwn)
    }

    private static let sequences = (VectorFile.backoff?.stateful ?? []).filter { jitter(of: $0) != nil }

    private static func jitter(of sequence: BackoffVectors.Sequence) -> Jitter? {
        switch sequence.id {
        case "aws-decorrelated", "aws-simulator-decorrelated": .decorrelated
        case "polly-decorrelated-v2", "polly-decorrelated-v2-capped": .pollyV2
        default: nil
        }
    }

    @Test(
        "E0: stateful vectors, and defect 1 of 15: a clamp after the formula removes the jitter",
        arguments: sequences
    )
    func stateful(sequence: BackoffVectors.Sequence) throws {
        let jitter = try #require(BackoffVectorTests.jitter(of: sequence))
        let backoff = try #require(BackoffVectorTests.backoff(sequence.params, sequence.params["base_s"], jitter))
        var meetings = 0
        var state = BackoffState()
        for (retry, (sample, expected)) in zip(sequence.samples, sequence.expected).enumerated() {
            let delay = backoff.delay(retry: retry, sample: sample, state: &state)
            if jitter == .pollyV2, backoff.ceiling(retry: retry) >= backoff.cap {
                #expect(delay < backoff.cap, "n \(retry): the herd meets at the cap")
                meetings += .seconds(expected) >= backoff.cap ? 1 : 0
            } else {
                #expect(
                    BackoffVectorTests.isNear(delay, expected, quantum: sequence.quantum),
                    "n \(retry) u \(sample): \(delay), not \(expected)"
                )
            }
            guard Set(sequence.samples).count == 1 else { continue }
            #expect(backoff.delay(retry: retry, sample: sample) == delay, "without memory: as if all samples were one")
        }
        if VectorFile.isOwn, sequence.id.hasSuffix("-capped") { #expect(meetings > 1, "theirs does not meet there") }
    }

    @Test(
        "E0: Squid's rule, if the file has it",
        arguments: (VectorFile.backoff?.stateless ?? []).filter { $0.id.hasPrefix("squid") }
    )
    func squid(series: BackoffVectors.Series) {
        let bound = series.params["maxBackoff_s", "max_backoff_s", "max_s", "stop_s"] ?? 600
        let backoff = BinaryBackoff(maxBackoff: .seconds(bound), unit: .seconds(series.params["base_s", "unit_s"] ?? 1))
        for vector in series.cases {
            let delay = backoff.delay(retry: vector.retry - series.firstRetry)
            #expect(delay?.doubleSeconds == vector.expected, "n \(vector.retry)")
        }
    }
}
