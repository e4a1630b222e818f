// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import HoldfastTesting
import Testing

@Suite struct BackoffTests {
    /// The groups whose formula is one of ours, and the jitter each has.
    private static let jitters: [String: Jitter] = [
        "exponential-none": .none, "full-jitter": .full, "equal-jitter": .equal, "aws-simulator-exponential": .none,
        "aws-simulator-full": .full, "aws-simulator-equal": .equal, "aws-sdk-standard-2.0": .full,
        "aws-sdk-2.1-transient": .full, "aws-sdk-2.1-dynamodb-transient": .full, "aws-sdk-2.1-throttling": .full,
        "polly-exponential-none": .none, "tenacity-exponential": .none, "alamofire": .none, "swift-retry-full": .full,
    ]

    private static let series = (VectorFile.backoff?.stateless ?? []).filter { jitters[$0.id] != nil }

    private func number(_ series: BackoffVectors.Series, _ names: String...) -> Double? {
        names.lazy.compactMap { series.params[$0].flatMap { $0 } }.first
    }

    @Test("Stateless backoff vectors with a formula of ours", arguments: series)
    func vectors(series: BackoffVectors.Series) throws {
        let isPlain = series.id == "tenacity-exponential"
        // These two name their parameters otherwise: a factor for the base, and a base for the multiplier.
        let base = isPlain ? number(series, "multiplier") : number(series, "base_s", "x_s", "scale_s")
        let growth = isPlain ? nil : series.id == "alamofire" ? number(series, "base") : number(series, "multiplier")
        let cap = number(series, "cap_s", "max_s")
        // Where the first retry is n = 1, the simulator raises to n and the others to n - 1.
        let isSimulator = series.id.hasPrefix("aws-simulator")
        let offset = isSimulator ? 0 : series.firstRetry
        let backoff = Backoff(
            base: .seconds(try #require(base)),
            multiplier: growth ?? 2,
            cap: .seconds(cap ?? 1e9),
            jitter: try #require(BackoffTests.jitters[series.id])
        )
        for vector in series.cases {
            let delay = backoff.delay(retry: vector.retry - offset, sample: vector.sample ?? 0)
            let error = abs(delay.doubleSeconds - vector.expected)
            #expect(error <= max(1e-9, vector.expected * 1e-9), "n \(vector.retry) u \(vector.sample ?? 0): \(delay)")
        }
    }

    @Test("Equal jitter lies in the upper half", arguments: [(0.0, 200), (0.5, 300), (0.75, 350)])
    func equalJitter(sample: Double, milliseconds: Int) {
        let backoff = Backoff(base: .milliseconds(100), jitter: .equal)
        #expect(backoff.delay(retry: 2, sample: sample) == .milliseconds(milliseconds))
    }

    @Test("RETRY.md §2.1: the cap comes before the jitter, and the floor under it")
    func capAndFloor() {
        let backoff = Backoff(base: .seconds(1), cap: .seconds(8), floor: .seconds(2))
        #expect(backoff.ceiling(retry: 50) == .seconds(8))
        #expect(backoff.delay(retry: 50, sample: 0.5) == .seconds(5))
        #expect(backoff.delay(retry: 50, sample: 0) == .seconds(2))
        #expect(backoff.delay(retry: 0, sample: 0.9) == .seconds(1))
    }

    @Test(
        "Strange parameters are clamped",
        arguments: [
            (Backoff(base: .seconds(-1)), Duration.zero), (Backoff(base: .zero), .zero),
            (Backoff(cap: .seconds(-1)), .zero), (Backoff(multiplier: .nan), .milliseconds(100)),
            (Backoff(multiplier: -5), .milliseconds(100)), (Backoff(multiplier: .infinity), .seconds(20)),
        ]
    )
    func clamping(backoff: Backoff, ceiling: Duration) {
        #expect(backoff.ceiling(retry: 3) == ceiling)
        #expect(backoff.ceiling(retry: -1) <= .milliseconds(100))
        #expect(backoff.ceiling(retry: .max) >= .zero)
        #expect(backoff.delay(retry: 3, sample: .nan) >= .zero)
        #expect(backoff.delay(retry: 3, sample: 7) <= .seconds(20))
    }

    @Test("Delays lie between floor and cap", arguments: propertySeeds)
    func bounds(seed: UInt64) {
        var source = SeededGenerator(seed: seed)
        for _ in 0..<300 {
            let backoff = Backoff(
                base: .milliseconds(Int.random(in: 0...5000, using: &source)),
                multiplier: Double.random(in: 1...10, using: &source),
                cap: .milliseconds(Int.random(in: 0...60_000, using: &source)),
                floor: .milliseconds(Int.random(in: 0...10, using: &source)),
                jitter: [Jitter.none, .full, .equal].randomElement(using: &source) ?? .full
            )
            let retry = Int.random(in: 0...2000, using: &source)
            let delay = backoff.delay(retry: retry, using: &source)
            let ceiling = backoff.ceiling(retry: retry)
            #expect(delay <= ceiling && ceiling <= backoff.cap)
            #expect(delay >= min(backoff.floor, ceiling) - .nanoseconds(1))
            #expect(backoff.ceiling(retry: retry + 1) >= ceiling)
        }
    }
}
