// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastTesting
import Testing

@testable import HoldfastStorage

@Suite("RestDecision", .timeLimit(.minutes(20)))
struct RestDecisionTests {
    private func resting() -> RestDecision {
        var judge = RestDecision()
        for _ in 0..<RestDecision.failuresBeforeRest { judge.failed(now: .at(1_000)) }
        return judge
    }

    /// What a judge answers to questions in a row.
    private func answers(_ judge: inout RestDecision, _ instants: StoreInstant?...) -> [Bool] {
        instants.map { judge.admits(now: $0) }
    }

    @Test("Consecutive failures start a pause, and a success between them prevents it")
    func begins() {
        var judge = RestDecision()
        for _ in 0..<(RestDecision.failuresBeforeRest - 1) { judge.failed(now: .at(0)) }
        let before = answers(&judge, .at(0))
        judge.succeeded()
        judge.failed(now: .at(0))
        let after = answers(&judge, .at(0))
        #expect(before == [true] && after == [true])
        var other = resting()
        let rests = other.rests(now: .at(1_000))
        let refused = answers(&other, .at(1_000))
        #expect(rests && refused == [false])
    }

    @Test("A pause ends at its instant")
    func endsByClock() {
        var judge = resting()
        let end = 1_000 + RestDecision.restMilliseconds
        let all = answers(&judge, .at(end - 1), .at(end), nil)
        #expect(all == [false, true, true])
    }

    @Test("Without a clock, or with one that runs backwards, a pause ends after a bounded number of operations")
    func endsByCount() {
        for now in [nil, StoreInstant.at(-5)] {
            var judge = resting()
            var refused = 0
            while !judge.admits(now: now) { refused += 1 }
            #expect(refused == RestDecision.refusals)
        }
    }

    @Test("The first failure after a pause starts another; the end of time does not overflow")
    func failsAgain() {
        var judge = resting()
        let rested = answers(&judge, .at(100_000))
        judge.failed(now: .distantFuture)
        let again = answers(&judge, .at(100_000))
        judge.succeeded()
        let healed = answers(&judge, .at(100_000))
        #expect(rested == [true] && again == [false] && healed == [true])
    }
}
