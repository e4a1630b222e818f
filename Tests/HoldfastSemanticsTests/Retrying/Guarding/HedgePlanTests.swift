// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import Testing

@Suite("HedgePlan", .timeLimit(.minutes(20)))
struct HedgePlanTests {
    /// The times at which copies are sent when none answers.
    func schedule(_ plan: HedgePlan, pushback: (at: Duration, length: Duration)? = nil) -> [Duration] {
        var plan = plan
        var pushback = pushback
        var times: [Duration] = []
        while let next = plan.nextSend {
            if let (at, length) = pushback, at < next {
                plan.copyFailed(pushback: length, now: at)
                pushback = nil
                continue
            }
            times.append(next)
            plan.copySent(now: next)
        }
        return times
    }

    @Test("Vector grpc-hedging-schedule: a copy every 0.5 s, four in all")
    func grpcSchedule() {
        let plan = HedgePlan(delay: .seconds(0.5), maxCopies: 4, start: .zero)
        #expect(schedule(plan) == [.zero, .seconds(0.5), .seconds(1), .seconds(1.5)])
    }

    @Test("Vector grpc-hedging-zero-delay: all at once")
    func grpcZeroDelay() {
        #expect(schedule(HedgePlan(delay: .zero, maxCopies: 4, start: .zero)) == [.zero, .zero, .zero, .zero])
    }

    @Test("Vector grpc-hedging-pushback: 0.3 s requested at 0.1 s puts the next at 0.4 s, then the delay applies again")
    func grpcPushback() {
        let plan = HedgePlan(delay: .seconds(0.5), maxCopies: 4, start: .zero)
        let times = schedule(plan, pushback: (.milliseconds(100), .milliseconds(300)))
        #expect(times == [.zero, .milliseconds(400), .milliseconds(900), .milliseconds(1400)])
    }

    @Test("Vector grpc-attempt-cap: nine copies count as five", arguments: [(9, 5), (5, 5), (0, 1), (-7, 1)])
    func grpcCap(asked: Int, effective: Int) {
        #expect(schedule(HedgePlan(delay: .seconds(1), maxCopies: asked, start: .zero)).count == effective)
    }

    @Test("Vectors grpc-hedging-*: the schedules of the shared file", arguments: VectorFile.backoff?.hedging ?? [])
    func sharedVectors(each: BackoffVectors.Claim) {
        if let effective = each.expected["effective"], let asked = each.params["maxAttempts"] {
            let plan = HedgePlan(delay: .seconds(1), maxCopies: Int(asked), start: .zero)
            #expect(schedule(plan).count == Int(effective))
        }
        guard let expected = each.expected.list("send_times_s"), let delay = each.params["hedgingDelay_s"],
            let copies = each.params["maxAttempts"]
        else { return }
        var pushback: (at: Duration, length: Duration)?
        if let at = each.params["pushback_at_s"], let length = each.params["pushback_s"] {
            pushback = (.milliseconds(Int(at * 1000 + 0.5)), .milliseconds(Int(length * 1000 + 0.5)))
        }
        let plan = HedgePlan(delay: .milliseconds(Int(delay * 1000 + 0.5)), maxCopies: Int(copies), start: .zero)
        #expect(schedule(plan, pushback: pushback) == expected.map { .milliseconds(Int($0 * 1000 + 0.5)) })
    }

    @Test("A failure that another copy may cure sends the next at once; no more copies are sent than configured")
    func failureSendsNext() {
        var plan = HedgePlan(delay: .seconds(10), maxCopies: 2, start: .seconds(3))
        plan.copySent(now: .seconds(3))
        #expect(plan.nextSend == .seconds(13))
        plan.copyFailed(now: .seconds(4))
        #expect(plan.nextSend == .seconds(4))
        plan.copySent(now: .seconds(4))
        #expect(plan.nextSend == nil)
        #expect(plan.inFlight == 1)
        plan.copyFailed(now: .seconds(5))
        #expect(plan.inFlight == 0 && plan.nextSend == nil)
    }

    @Test("A negative pushback, or a copy that may not be sent, ends the plan; copies in flight continue")
    func endings() {
        var plan = HedgePlan(delay: .seconds(1), maxCopies: 5, start: .zero)
        plan.copySent(now: .zero)
        plan.copySent(now: .seconds(1))
        plan.copyFailed(pushback: .seconds(-1), now: .seconds(1))
        #expect(plan.nextSend == nil)
        #expect(plan.inFlight == 1)
        var stopped = HedgePlan(delay: .seconds(1), maxCopies: 5, start: .zero)
        stopped.copySent(now: .zero)
        stopped.stop()
        #expect(stopped.nextSend == nil && stopped.inFlight == 1)
    }
}
