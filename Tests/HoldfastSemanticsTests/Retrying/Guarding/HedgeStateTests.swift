// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import HoldfastTesting
import Testing

@Suite("HedgeState", .timeLimit(.minutes(20)))
struct HedgeStateTests {
    /// A partition that has seen `count` answers of 50 ms.
    func warm(_ rules: HedgeRules = HedgeRules(), count: Int = 200) -> HedgeState {
        var state = HedgeState(rules, now: .zero)
        for _ in 0..<count {
            _ = state.attemptBegan(now: .zero)
            state.attemptEnded(length: .milliseconds(50), succeeded: true, wasLate: false, now: .zero)
        }
        return state
    }

    @Test("Nothing is hedged before enough responses were measured; failures are not responses")
    func minimumSamples() {
        var state = warm(count: 99)
        #expect(state.attemptBegan(now: .zero) == nil)
        state.attemptEnded(length: .milliseconds(50), succeeded: false, wasLate: false, now: .zero)
        #expect(state.attemptBegan(now: .zero) == nil)
        state.attemptEnded(length: .milliseconds(50), succeeded: true, wasLate: false, now: .zero)
        #expect(state.attemptBegan(now: .zero) != nil)
    }

    @Test("The delay is the percentile, but not below the minimum delay")
    func delay() {
        var state = warm()
        let delay = state.attemptBegan(now: .zero) ?? .zero
        #expect(delay >= .milliseconds(50) && delay < .milliseconds(52))
        var rules = HedgeRules()
        rules.minimumDelay = .milliseconds(80)
        var slower = warm(rules)
        #expect(slower.attemptBegan(now: .zero) == .milliseconds(80))
    }

    @Test("A fixed delay needs no measurements, but each hedge is still paid for")
    func fixedDelay() {
        var rules = HedgeRules()
        rules.fixedDelay = .milliseconds(5)
        var state = HedgeState(rules, now: .zero)
        #expect(state.attemptBegan(now: .zero) == .milliseconds(5))
        #expect(state.permitHedge() == false)
        for _ in 0..<19 { _ = state.attemptBegan(now: .zero) }
        #expect(state.permitHedge() == true)
        #expect(state.permitHedge() == false)
        state.giveBack()
        #expect(state.permitHedge() == true)
    }

    @Test("At most ten hedges can be saved up")
    func savings() {
        var rules = HedgeRules()
        rules.fixedDelay = .zero
        var state = warm(rules, count: 10_000)
        #expect((0..<100).filter { _ in state.permitHedge() }.count == 10)
    }

    @Test("Off while many fail: an eighth of the last 64")
    func offWhileFailing() {
        var state = warm()
        for _ in 0..<8 { state.attemptEnded(length: .zero, succeeded: false, wasLate: false, now: .zero) }
        #expect(state.permitHedge() == true)
        state.attemptEnded(length: .zero, succeeded: false, wasLate: false, now: .zero)
        #expect(state.permitHedge() == false)
        for _ in 0..<64 {
            state.attemptEnded(length: .milliseconds(50), succeeded: true, wasLate: false, now: .zero)
        }
        #expect(state.permitHedge() == true)
    }

    @Test("Off while the median has shifted; what stays slow for minutes becomes normal")
    func offWhileShifted() {
        var state = warm()
        var now = Duration.zero
        for _ in 0..<64 { state.attemptEnded(length: .milliseconds(300), succeeded: true, wasLate: false, now: now) }
        #expect(state.permitHedge() == false)
        var seconds = 0
        while seconds < 3600 {
            seconds += 1
            now = .seconds(seconds)
            for _ in 0..<10 {
                _ = state.attemptBegan(now: now)
                state.attemptEnded(length: .milliseconds(300), succeeded: true, wasLate: false, now: now)
            }
            if state.permitHedge() { break }
        }
        #expect((60...600).contains(seconds), "\(seconds) s")
    }

    @Test(
        "Off while more calls are late than the percentile predicts, so slowness is seen before slow responses arrive"
    )
    func offWhileLate() {
        var state = warm(count: 1000)
        let hedges = (0..<500).filter { _ in
            _ = state.attemptBegan(now: .zero)
            return state.permitHedge()
        }
        #expect(hedges.count <= 11)
    }

    @Test("Invalid rules do not trap", arguments: [Double.nan, -1, 2, .infinity])
    func senseless(share: Double) {
        var rules = HedgeRules()
        rules.percentile = share
        rules.maxExtraLoad = share
        rules.minimumSamples = -1
        rules.minimumDelay = .seconds(-1)
        var state = HedgeState(rules, now: .seconds(-1))
        for index in 0..<200 {
            _ = state.attemptBegan(now: .seconds(index))
            _ = state.permitHedge()
            state.attemptEnded(length: .seconds(-1), succeeded: true, wasLate: true, now: .seconds(index))
        }
        #expect(state.attemptBegan(now: .zero) != nil)
    }
}
