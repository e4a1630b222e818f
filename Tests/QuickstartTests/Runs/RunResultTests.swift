// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Holdfast
import Testing

@testable import Quickstart

@Suite("The figures of a run", .timeLimit(.minutes(20)))
struct RunResultTests {
    @Test(
        "Percentiles are nearest-rank",
        arguments: [
            (50, [15, 20, 35, 40, 50], 35), (30, [15, 20, 35, 40, 50], 20), (40, [15, 20, 35, 40, 50], 20),
            (100, [15, 20, 35, 40, 50], 50), (99, [1], 1), (50, [1, 2], 1), (99, Array(1...100), 99),
            (99, Array(1...101), 100), (50, Array(1...4_000), 2_000), (0, [3, 4], 3),
        ]
    )
    func percentile(_ percent: Int, _ values: [Int], _ expected: Int) {
        let durations = values.map { Duration.milliseconds($0) }
        #expect(RunResult.percentile(percent, of: durations) == .milliseconds(expected))
    }

    @Test("Without calls a percentile is zero")
    func none() {
        #expect(RunResult.percentile(99, of: []) == .zero)
    }

    @Test("Latencies come in any order, and times are milliseconds with three decimals")
    func times() {
        let outcome = Run.Outcome(
            latencies: [.microseconds(3_001), .microseconds(1_234), .microseconds(2_000)],
            failed: 1,
            duration: .milliseconds(1_500)
        )
        let traffic = Traffic(sends: 5, bodyBytes: 70, notModified: 0)
        let result = RunResult(name: "bare", outcome: outcome, traffic: traffic, cache: nil)
        #expect(result.p50ms == 2)
        #expect(result.p99ms == 3.001)
        #expect(result.seconds == 1.5)
        #expect(result.calls == 3)
        #expect(result.sent == 5)
        #expect(result.failed == 1)
        #expect(result.bytesFromNetwork == 70)
        #expect(!result.cached)
        #expect(result.hitRatio == 0 && result.byteHitRatio == 0 && result.bytesSaved == 0)
    }
}
