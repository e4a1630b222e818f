// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Testing

@testable import HoldfastSimulation

@Suite("The server of a storm")
struct StormServerTests {
    private func server(
        workers: Int = 1,
        maxWait: Double = 5,
        faults: [StormFault] = [],
        mean: Double = 0.05
    ) -> StormServer {
        var scenario = StormScenario("server", rate: 1)
        scenario.server.workers = workers
        scenario.server.mean = mean
        scenario.server.maxWait = maxWait
        scenario.faults = faults
        return StormServer(scenario, seed: 1)
    }

    @Test("Requests are served in order of arrival, as many at a time as there are workers")
    func queue() {
        var one = server()
        let first = one.submit(now: .zero, limit: nil)
        let second = one.submit(now: .zero, limit: nil)
        #expect(first.ending == .served && second.ending == .served && second.time > first.time)
        var two = server(workers: 2)
        #expect(two.submit(now: .zero, limit: nil).time == first.time)
        #expect(two.submit(now: .zero, limit: nil).time == second.time - first.time)
    }

    @Test("A request that would wait longer than the maximum is refused after 5 ms and takes no worker's time")
    func full() {
        var server = server(maxWait: 0.2, mean: 10)
        let end = server.submit(now: .zero, limit: nil).time
        #expect(server.submit(now: .zero, limit: nil).ending == .refused)
        #expect(server.submit(now: .seconds(1), limit: nil).time == .milliseconds(1_005))
        #expect(server.submit(now: end, limit: nil).ending == .served)
    }

    @Test("A request whose sender gives up is still served: the work is wasted and the worker occupied")
    func wasted() {
        var (left, awaited) = (server(maxWait: 100, mean: 10), server(maxWait: 100, mean: 10))
        let answer = left.submit(now: .zero, limit: .milliseconds(1))
        #expect(answer.ending == .timedOut && answer.time == .milliseconds(1) && left.wasted == 1)
        let end = awaited.submit(now: .zero, limit: nil).time
        let next = left.submit(now: .milliseconds(2), limit: nil)
        #expect(next.ending == .served && next.time > end && awaited.wasted == 0)
        #expect(next.time == awaited.submit(now: .milliseconds(2), limit: nil).time)
        left.abandon(now: .milliseconds(2))
        #expect(left.wasted == 2)
    }

    @Test("Nothing that happens in the warm-up is counted")
    func warmUp() {
        var scenario = StormScenario("warmed", rate: 1)
        scenario.warmUp = 10
        scenario.server.workers = 1
        scenario.server.mean = 1_000
        scenario.server.maxWait = 100_000
        var server = StormServer(scenario, seed: 1)
        _ = server.submit(now: .zero, limit: .seconds(9))
        server.abandon(now: .seconds(9))
        #expect(server.wasted == 0)
        _ = server.submit(now: .seconds(9), limit: .seconds(10))
        server.abandon(now: .seconds(10))
        #expect(server.wasted == 2)

        scenario.faults = [StormFault(.throttle, from: 0, to: 100, amount: 20)]
        let world = StormWorld(scenario, seed: 1)
        let answer = world.submit(0, resource: 0, attempt: 1, now: .zero, limit: nil)
        world.answered(0, answer: answer, resource: 0, now: .zero)
        _ = world.submit(0, resource: 0, attempt: 2, now: .seconds(9), limit: nil)
        #expect(world.book.earlySends == 0)
        #expect(world.book.closedTime == .seconds(10), "of twenty seconds, those after the warm-up")
        _ = world.submit(0, resource: 0, attempt: 3, now: .seconds(10), limit: nil)
        #expect(world.book.earlySends == 1)
    }

    @Test("Faults last from their start to just before their end, and overlapping ones all apply")
    func faults() {
        var down = server(faults: [StormFault(.down, from: 1, to: 2)])
        #expect(down.submit(now: .milliseconds(999), limit: nil).ending == .served)
        #expect(down.submit(now: .seconds(1), limit: nil).ending == .refused)
        #expect(down.submit(now: .seconds(2), limit: nil).ending == .served)
        var throttled = server(faults: [StormFault(.throttle, from: 0, to: 1, amount: 7)])
        let answer = throttled.submit(now: .zero, limit: nil)
        #expect(answer.ending == .throttled && answer.advice == 7 && answer.time == .milliseconds(5))
        var healthy = server()
        var slow = server(faults: [
            StormFault(.slow, from: 0, to: 1, amount: 2), StormFault(.slow, from: 0, to: 1, amount: 3),
        ])
        let (usual, slowed) = (healthy.submit(now: .zero, limit: nil).time, slow.submit(now: .zero, limit: nil).time)
        #expect(abs((slowed - usual * 6) / .nanoseconds(1)) <= 6)
        var failing = server(workers: 10_000, faults: [StormFault(.err, from: 0, to: 1, amount: 0.3)])
        let refused = (0..<5_000).count { _ in failing.submit(now: .zero, limit: nil).ending == .refused }
        #expect((1_370...1_630).contains(refused))
    }
}
