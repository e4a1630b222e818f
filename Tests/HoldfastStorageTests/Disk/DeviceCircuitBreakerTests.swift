// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastTesting
import Testing

@testable import HoldfastStorage

@Suite("DeviceCircuitBreaker", .timeLimit(.minutes(20)))
struct DeviceCircuitBreakerTests {
    private func opened() -> DeviceCircuitBreaker {
        var breaker = DeviceCircuitBreaker()
        for _ in 0..<DeviceCircuitBreaker.failuresBeforePause { breaker.failed(now: .at(1_000)) }
        return breaker
    }

    /// What a judge answers to questions in a row.
    private func answers(_ breaker: inout DeviceCircuitBreaker, _ instants: StoreInstant?...) -> [Bool] {
        instants.map { breaker.admits(now: $0) }
    }

    @Test("Consecutive failures start a pause, and a success between them prevents it")
    func begins() {
        var breaker = DeviceCircuitBreaker()
        for _ in 0..<(DeviceCircuitBreaker.failuresBeforePause - 1) { breaker.failed(now: .at(0)) }
        let before = answers(&breaker, .at(0))
        breaker.succeeded()
        breaker.failed(now: .at(0))
        let after = answers(&breaker, .at(0))
        #expect(before == [true] && after == [true])
        var other = opened()
        let isOpen = other.isOpen(now: .at(1_000))
        let refused = answers(&other, .at(1_000))
        #expect(isOpen && refused == [false])
    }

    @Test("A pause ends at its instant")
    func endsByClock() {
        var breaker = opened()
        let end = 1_000 + DeviceCircuitBreaker.pauseMilliseconds
        let all = answers(&breaker, .at(end - 1), .at(end), nil)
        #expect(all == [false, true, true])
    }

    @Test("Without a clock, or with one that runs backwards, a pause ends after a bounded number of operations")
    func endsByCount() {
        for now in [nil, StoreInstant.at(-5)] {
            var breaker = opened()
            var refused = 0
            while !breaker.admits(now: now) { refused += 1 }
            #expect(refused == DeviceCircuitBreaker.refusals)
        }
    }

    @Test("The first failure after a pause starts another; the end of time does not overflow")
    func failsAgain() {
        var breaker = opened()
        let rested = answers(&breaker, .at(100_000))
        breaker.failed(now: .distantFuture)
        let again = answers(&breaker, .at(100_000))
        breaker.succeeded()
        let healed = answers(&breaker, .at(100_000))
        #expect(rested == [true] && again == [false] && healed == [true])
    }
}
