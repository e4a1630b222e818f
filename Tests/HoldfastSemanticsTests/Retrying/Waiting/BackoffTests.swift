// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import HoldfastTesting
import Testing

@Suite struct BackoffTests {
    @Test("Equal jitter lies in the upper half", arguments: [(0.0, 200), (0.5, 300), (0.75, 350)])
    func equalJitter(sample: Double, milliseconds: Int) {
        let backoff = Backoff(base: .milliseconds(100), jitter: .equal)
        #expect(backoff.delay(retry: 2, sample: sample) == .milliseconds(milliseconds))
    }

    @Test("Equal jitter respects the floor, and stays spread above it", arguments: [(0.0, 300), (0.5, 350)])
    func equalJitterAboveFloor(sample: Double, milliseconds: Int) {
        let backoff = Backoff(base: .milliseconds(100), floor: .milliseconds(300), jitter: .equal)
        #expect(backoff.delay(retry: 2, sample: sample) == .milliseconds(milliseconds))
    }

    @Test("Proportional jitter spreads to both sides of the ceiling", arguments: [(0.0, 160), (0.5, 200), (1, 240)])
    func proportionalJitter(sample: Double, milliseconds: Int) {
        let backoff = Backoff(jitter: .proportional(0.2))
        #expect(backoff.delay(retry: 1, sample: sample) == .milliseconds(milliseconds))
    }

    @Test("An invalid share of jitter is clamped", arguments: [(-1.0, 100), (.nan, 100), (9, 200)])
    func proportionalShare(share: Double, milliseconds: Int) {
        #expect(Backoff(jitter: .proportional(share)).delay(retry: 0, sample: 1) == .milliseconds(milliseconds))
    }

    @Test("RETRY.md §2.1: the cap applies before the jitter, and the floor after it")
    func capAndFloor() {
        let backoff = Backoff(base: .seconds(1), cap: .seconds(8), floor: .seconds(2))
        #expect(backoff.ceiling(retry: 50) == .seconds(8))
        #expect(backoff.delay(retry: 50, sample: 0.5) == .seconds(5))
        #expect(backoff.delay(retry: 50, sample: 0) == .seconds(2))
        #expect(backoff.delay(retry: 0, sample: 0.9) == .seconds(1))
    }

    @Test(
        "Extreme parameters are clamped",
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
}
