// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import HoldfastTesting
import Testing

@Suite struct AdaptivePacingTests {
    private static func paces(_ id: String) -> [BackoffVectors.Pace] {
        (VectorFile.backoff?.rateLimiter ?? []).filter { $0.id == id }
    }

    private func isNear(_ value: Double, _ expected: Double) -> Bool {
        abs(value - expected) <= max(1e-9, abs(expected) * 1e-9)
    }

    @Test("E0: the cubic curve after successes", arguments: paces("cubic-success"))
    func success(vector: BackoffVectors.Pace) throws {
        let cubic = CubicRate(
            throttledRate: try #require(vector.params["last_max_rate"]),
            throttledAt: try #require(vector.params["last_throttle_t"])
        )
        for moment in vector.cases {
            #expect(isNear(cubic.succeeded(at: moment.time), try #require(moment.rate)), "t \(moment.time)")
        }
    }

    @Test("E0: the cubic curve with throttling between", arguments: paces("cubic-mixed"))
    func mixed(vector: BackoffVectors.Pace) throws {
        var cubic = CubicRate(
            throttledRate: try #require(vector.params["start_w_max"]),
            throttledAt: try #require(vector.params["start_last_throttle"])
        )
        var rate = 0.0
        for moment in vector.cases {
            if moment.isThrottled == true {
                rate = cubic.throttled(rate: rate, at: moment.time)
                // The vector's way, not the rule's: there the curve goes on from the rate that is already cut.
                cubic.throttledRate = rate
            } else {
                rate = cubic.succeeded(at: moment.time)
            }
            #expect(isNear(rate, try #require(moment.rate)), "t \(moment.time)")
        }
    }

    @Test("E0: measured and allowed rates of a client", arguments: paces("client-rate-limiter-trace"))
    func trace(vector: BackoffVectors.Pace) throws {
        var pacing = AdaptivePacing(now: .zero)
        for moment in vector.cases {
            let now = Duration.milliseconds(Int(moment.time * 1000 + 0.5))
            if moment.isThrottled == true { pacing.throttled(now: now) } else { pacing.succeeded(now: now) }
            #expect(isNear(pacing.measuredRate, try #require(moment.measuredRate)), "t \(moment.time)")
            #expect(isNear(pacing.fillRate, try #require(moment.fillRate)), "t \(moment.time)")
        }
    }

    @Test("The token of an attempt that was not made serves the next one")
    func giveBack() {
        var pacing = AdaptivePacing(now: .zero)
        pacing.throttled(now: .zero)
        #expect(pacing.acquire(now: .seconds(2)) == .zero)
        #expect(pacing.acquire(now: .seconds(2)) > .zero)
        pacing.giveBack()
        #expect(pacing.acquire(now: .seconds(2)) == .zero)
        #expect(pacing.acquire(now: .seconds(2)) > .zero)
    }

    @Test("RETRY.md §2.3: off until the first throttling")
    func off() {
        var pacing = AdaptivePacing(now: .zero)
        for step in 0..<1000 {
            #expect(pacing.acquire(now: .milliseconds(step)) == .zero)
            pacing.succeeded(now: .milliseconds(step))
        }
        #expect(pacing.rate == nil && !pacing.isLimiting)
        pacing.throttled(now: .seconds(1))
        #expect(pacing.isLimiting && pacing.rate != nil)
    }

    @Test("A waiter that asks again after its wait may go; one that asks early waits for the rest")
    func waiting() {
        var pacing = AdaptivePacing(now: .zero)
        pacing.throttled(now: .zero)
        #expect(pacing.rate == 0.5)
        let wait = pacing.acquire(now: .zero)
        #expect(wait > .seconds(1.999) && wait < .seconds(2.001))
        let rest = pacing.acquire(now: .seconds(1.5))
        #expect(rest > .seconds(0.499) && rest < .seconds(0.501))
        #expect(pacing.acquire(now: .seconds(1.5) + rest) == .zero)
        #expect(pacing.acquire(now: .seconds(1.5) + rest) > .seconds(1.9))
    }

    @Test(
        "Never slower than one in two seconds, never a burst above the rate, and no time value traps",
        arguments: propertySeeds
    )
    func anyHistory(seed: UInt64) {
        var source = SeededGenerator(seed: seed)
        var pacing = AdaptivePacing(now: .zero)
        var now = Duration.zero
        for _ in 0..<1000 {
            now += .milliseconds(Int.random(in: -50...150, using: &source))
            if Int.random(in: 0..<500, using: &source) == 0 {
                now = .seconds(Double.random(in: -1e15...1e15, using: &source))
            }
            switch Int.random(in: 0..<4, using: &source) {
            case 0: pacing.throttled(now: now)
            case 1: pacing.succeeded(now: now)
            default:
                let wait = pacing.acquire(now: now)
                #expect(wait >= .zero && wait <= .seconds(2.001))
            }
            #expect(pacing.fillRate >= 0.5 && pacing.fillRate <= max(0.5, 2 * pacing.measuredRate))
        }
    }

    @Test(
        "If throttling starts above 20 a second, the rate falls below that, and successes bring it back to half of it"
    )
    func convergence() {
        var pacing = AdaptivePacing(now: .zero)
        var sent = [Int](repeating: 0, count: 60)
        var admitted: [Int] = []
        // A client that always has something to send, asked every 10 ms; the server takes 20 in each second.
        for step in 0..<6000 {
            let now = Duration.milliseconds(step * 10)
            while admitted.count < 10_000, pacing.acquire(now: now) == .zero {
                let second = step / 100
                sent[second] += 1
                admitted.append(step)
                if sent[second] > 20 { pacing.throttled(now: now) } else { pacing.succeeded(now: now) }
                if !pacing.isLimiting, sent[second] > 40 { break }
            }
        }
        let late = sent[30..<60]
        let mean = late.reduce(0, +) / late.count
        #expect(mean >= 10 && mean <= 30, "\(sent)")
    }
}
