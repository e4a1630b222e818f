// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

extension StormScenario {
    /// The server is down for 30 s at 70 % of its capacity, then healthy: what do retries add, and what comes after?
    public static let outage: StormScenario = {
        var scenario = StormScenario("outage", rate: 700)
        scenario.horizon = 120
        scenario.faults = [StormFault(.down, from: 30, to: 60)]
        return scenario
    }()

    /// Service takes 2.5 times as long for 10 s at 70 % of the capacity: does the fleet ever recover?
    public static let slow: StormScenario = {
        var scenario = StormScenario("slow", rate: 700)
        scenario.horizon = 120
        scenario.faults = [StormFault(.slow, from: 30, to: 40, amount: 2.5)]
        return scenario
    }()

    /// 2,000 calls at once to a server that is down for 10 s, with a minute and 50 attempts each: how do they return?
    public static let herd: StormScenario = {
        var scenario = StormScenario("herd", burst: 2_000)
        scenario.faults = [StormFault(.down, from: 0, to: 10)]
        scenario.deadline = 60
        scenario.attempts = 50
        return scenario
    }()

    /// A share of the requests fails by chance, for a minute, at 30 % of the capacity.
    ///
    /// - Parameter percent: how many in a hundred.
    public static func brownout(_ percent: Double) -> StormScenario {
        let name = percent == percent.rounded() ? "\(Int(max(0, min(percent, 100))))" : "\(percent)"
        var scenario = StormScenario("brownout-\(name)", rate: 300)
        scenario.faults = [StormFault(.err, from: 0, to: 60, amount: percent / 100)]
        return scenario
    }

    /// 1,000 clients are told at once to return in 5 s: who is early, and do they return together?
    public static let advisedHerd: StormScenario = {
        var scenario = StormScenario("advised-herd", burst: 1_000)
        scenario.processes = 1_000
        scenario.faults = [StormFault(.throttle, from: 0, to: 1, amount: 5)]
        scenario.deadline = 60
        return scenario
    }()

    /// 500 calls a second to a server that answers 429 with Retry-After: 5 for 20 s: how many go out although a client knows?
    public static let gate: StormScenario = {
        var scenario = StormScenario("gate", rate: 500)
        scenario.horizon = 60
        scenario.faults = [StormFault(.throttle, from: 10, to: 30, amount: 5)]
        return scenario
    }()

    /// The study: outage, slow server, brown-outs of 1, 5, 10, 30, 50 and 90 %, herd, advised herd and gate.
    public static let study: [StormScenario] =
        [outage, slow] + [1, 5, 10, 30, 50, 90].map { brownout($0) } + [herd, advisedHerd, gate]
}
