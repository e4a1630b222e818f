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

    /// S1: so many calls at once from a client that has just begun; each meets one failure.
    ///
    /// - Parameter calls: how many.
    public static func blip(_ calls: Int) -> StormScenario {
        var scenario = StormScenario("blip-\(calls)", arrivals: [Arrival(at: 0, calls: calls)])
        scenario.faults = [StormFault(.once, from: 0, to: 60)]
        scenario.server.workers = 500
        scenario.seeds = Array(1...10)
        return scenario
    }

    /// S2: the same after a hundred good calls and ten idle minutes.
    ///
    /// - Parameter calls: how many.
    public static func idleBlip(_ calls: Int) -> StormScenario {
        let good = (0..<100).map { Arrival(at: Double($0) / 10, calls: 1) }
        var scenario = blip(calls)
        scenario.name = "idle-blip-\(calls)"
        scenario.arrivals = good + [Arrival(at: 610, calls: calls)]
        (scenario.horizon, scenario.warmUp) = (700, 600)
        scenario.faults = [StormFault(.once, from: 600, to: 700)]
        return scenario
    }

    /// S2d: the same after a minute of outage, which drained the budget, and ten idle minutes.
    ///
    /// - Parameter calls: how many.
    public static func drainedBlip(_ calls: Int) -> StormScenario {
        let failing = (0..<120).map { Arrival(at: Double($0) / 2, calls: 1) }
        var scenario = blip(calls)
        scenario.name = "drained-blip-\(calls)"
        scenario.arrivals = failing + [Arrival(at: 660, calls: calls)]
        (scenario.horizon, scenario.warmUp) = (700, 600)
        scenario.faults = [StormFault(.down, from: 0, to: 60), StormFault(.once, from: 600, to: 700)]
        return scenario
    }

    /// S3: one client that calls ten times every ten seconds, while 30 % fail by chance.
    public static let app: StormScenario = {
        var scenario = StormScenario("app", rate: 1)
        scenario.processes = 1
        (scenario.batch, scenario.batchSpread, scenario.period) = (10, 0.05, 10)
        scenario.horizon = 20_000
        scenario.faults = [StormFault(.err, from: 0, to: 20_000, amount: 0.3)]
        scenario.server.workers = 500
        return scenario
    }()

    /// S4: 20,000 clients that call ten times every 200 s, while the server is down for a minute.
    public static let apps: StormScenario = {
        var scenario = StormScenario("apps", rate: 1_000)
        scenario.processes = 20_000
        (scenario.batch, scenario.batchSpread) = (10, 0.1)
        scenario.horizon = 130
        scenario.faults = [StormFault(.down, from: 30, to: 90)]
        scenario.server.workers = 72
        return scenario
    }()

    /// S5: one resource of 101 always answers 503 with Retry-After: 1; one client, 100 calls a second.
    public static let oneResource: StormScenario = {
        var scenario = StormScenario("one-resource", rate: 100)
        scenario.processes = 1
        scenario.resources = 101
        scenario.horizon = 120
        scenario.faults = [StormFault(.unavailable, from: 0, to: 120, amount: 1, resources: 1)]
        scenario.server.workers = 500
        return scenario
    }()

    /// S6: 500 calls a second of one client to a server that answers every one with 429 and Retry-After: 5 for 20 s.
    public static let quota: StormScenario = {
        var scenario = StormScenario("quota", rate: 500)
        scenario.processes = 1
        scenario.resources = 100
        scenario.horizon = 60
        scenario.faults = [StormFault(.throttle, from: 10, to: 30, amount: 5)]
        scenario.server.workers = 500
        return scenario
    }()

    /// S7: the load of quickstart: 8 % fail by chance, one answer in 300 with Retry-After: 1.
    ///
    /// - Parameter advises: whether there is a Retry-After; false is what to compare with.
    public static func quickstart(advises: Bool = true) -> StormScenario {
        var scenario = StormScenario(advises ? "quickstart" : "quickstart-unadvised", rate: 100)
        scenario.processes = 1
        scenario.resources = 20
        scenario.horizon = 120
        scenario.faults = [
            StormFault(.unavailable, from: 0, to: 120, amount: 1, share: advises ? 1.0 / 300 : 0),
            StormFault(.err, from: 0, to: 120, amount: 0.08 - (advises ? 1.0 / 300 : 0)),
        ]
        scenario.server.workers = 500
        return scenario
    }

    /// The study: what a fleet does to a server (outage, slow server, brown-outs of 1, 5, 10, 30, 50 and 90 %, herd, advised
    /// herd, gate), and what becomes of small clients and of other resources (the lines S1 to S7).
    public static let study: [StormScenario] =
        [outage, slow] + [1, 5, 10, 30, 50, 90].map { brownout($0) } + [herd, advisedHerd, gate]
        + [blip(8), blip(32), idleBlip(32), drainedBlip(32), app, apps, oneResource, quota, quickstart()]
        + [quickstart(advises: false)]
}
