// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation

/// The load, the server and its faults, which ``Storm`` runs retriers through.
///
/// Times are in seconds of the virtual clock. In JSON every property is optional except ``name`` and one of ``rate``, ``burst`` and
/// ``arrivals``; omitted properties have their defaults.
public struct StormScenario: Sendable, Hashable {
    /// A server without a network: workers, one queue, and exponentially distributed service times.
    public struct Server: Sendable, Hashable {
        /// Requests served at the same time; 50 by default.
        public var workers = 50
        /// The mean service time in seconds; 0.05 by default, which with 50 workers allows 1,000 requests per second.
        public var mean = 0.05
        /// A request that would wait longer than this is refused at once; 5 s by default.
        public var maxWait = 5.0
        /// The status of refused requests, except by a `throttle`; 503 by default.
        public var refusal = 503

        /// A server with the defaults.
        public init() {}

        /// The most requests per second that it can serve.
        public var capacity: Double { mean > 0 ? Double(workers) / mean : 0 }
    }

    /// The name, for reports.
    public var name: String
    /// New calls per second of all processes together, with independent arrivals (Poisson); nil: see ``burst``.
    public var rate: Double?
    /// This many calls within the first 10 ms and none after; nil: see ``rate``, which is ignored if both are set.
    public var burst: Int?
    /// Calls at given times, instead of ``rate`` and ``burst``; none by default.
    public var arrivals: [Arrival] = []
    /// How many calls arrive together in a process, without changing ``rate``; 1 by default.
    public var batch = 1
    /// The calls of a batch begin within this many seconds; 0 by default.
    public var batchSpread = 0.0
    /// The seconds between the batches of a process; nil, the default: they arrive independently, by ``rate``.
    public var period: Double?
    /// How many URLs the calls use, each with the same probability; 1 by default.
    public var resources = 1
    /// Client processes, each with its own pipeline and retrier factory; 50 by default.
    public var processes = 50
    /// No new call begins after this time; 60 by default.
    public var horizon = 60.0
    /// Events before this time are not in the figures: calls that begin before it, and attempts; 0 by default.
    public var warmUp = 0.0
    /// The faults; none by default. They may overlap.
    public var faults: [StormFault] = []
    /// The server.
    public var server = Server()
    /// The time an attempt may take, in seconds; 1 by default.
    public var attemptTimeout = 1.0
    /// The time a call may take, in seconds; 10 by default.
    public var deadline = 10.0
    /// The number of attempts for rules with more than one, instead of their own; nil, the default: their own.
    public var attempts: Int?
    /// One run for each; 1, 2, 3 by default.
    public var seeds: [UInt64] = [1, 2, 3]

    /// A scenario with the defaults and an open load of `rate` calls per second.
    public init(_ name: String, rate: Double) {
        self.name = name
        self.rate = rate
    }

    /// A scenario with the defaults and `burst` calls at once.
    public init(_ name: String, burst: Int) {
        self.name = name
        self.burst = burst
    }

    /// A scenario with the defaults, one process, and calls at given times.
    public init(_ name: String, arrivals: [Arrival]) {
        self.name = name
        self.arrivals = arrivals
        processes = 1
    }

    /// The same scenario with a share of its clients and of its server, so that a test takes a share of the time.
    ///
    /// The load of each worker stays the same, and small fleets are less even: allow the figures more room. Calls at given times
    /// stay as they are.
    ///
    /// - Parameter share: of the rate, the burst, the processes and the server's workers; at least one worker and process stay.
    public func scaled(to share: Double) -> StormScenario {
        func part(of count: Int) -> Int {
            max(1, Int(exactly: (Double(count) * share).rounded()) ?? count)
        }
        var scaled = self
        scaled.rate = rate.map { $0 * share }
        scaled.burst = burst.map(part)
        scaled.processes = part(of: processes)
        scaled.server.workers = part(of: server.workers)
        return scaled
    }

    /// Calls that begin together.
    public struct Arrival: Sendable, Hashable, Codable {
        /// When the first may begin, in seconds.
        public var at: Double
        /// How many.
        public var calls: Int
        /// They begin within this many seconds; 0.01 by default.
        public var spread: Double

        /// An arrival.
        public init(at: Double, calls: Int, spread: Double = 0.01) {
            self.at = at
            self.calls = calls
            self.spread = spread
        }

        /// Decodes an arrival; `spread` is optional.
        public init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            at = try container.decode(Double.self, forKey: .at)
            calls = try container.decode(Int.self, forKey: .calls)
            spread = try container.decodeIfPresent(Double.self, forKey: .spread) ?? 0.01
        }
    }

    /// Whether the calls stop: then there is no load that could show a recovery.
    var isBurst: Bool { burst != nil || !arrivals.isEmpty }

    /// From the start of the first fault to the end of the last; nil without faults.
    public var faultWindow: Range<Double>? {
        guard let start = faults.map(\.from).min(), let end = faults.map(\.to).max(), start < end else { return nil }
        return start..<end
    }

    /// Rejects invalid values, and runs that would not end within a reasonable time.
    ///
    /// - Throws: ``StormScenarioError`` for the first one found, which names it.
    public func validate() throws(StormScenarioError) {
        try check("processes", value: Double(processes), range: 1...100_000)
        try check("horizon", value: horizon, range: 0.001...86_400)
        if !arrivals.isEmpty {
            for (index, arrival) in arrivals.enumerated() {
                try check("arrivals[\(index)].at", value: arrival.at, range: 0...86_400)
                try check("arrivals[\(index)].calls", value: Double(arrival.calls), range: 1...1_000_000)
                try check("arrivals[\(index)].spread", value: arrival.spread, range: 0...86_400)
            }
        } else if let burst {
            try check("burst", value: Double(burst), range: 1...1_000_000)
        } else if let rate {
            try check("rate", value: rate, range: 0.001...1_000_000)
            guard rate * horizon <= 10_000_000 else {
                throw StormScenarioError(
                    "rate",
                    message: "\(rate) for \(horizon) s are more than 10 million calls; take fewer."
                )
            }
        } else {
            throw StormScenarioError("rate", message: "rate, burst and arrivals are all missing; set one of them.")
        }
        try check("warmUp", value: warmUp, range: 0...86_400)
        try check("batch", value: Double(batch), range: 1...100_000)
        try check("batchSpread", value: batchSpread, range: 0...86_400)
        if let period { try check("period", value: period, range: 0.001...86_400) }
        try check("resources", value: Double(resources), range: 1...1_000_000)
        try check("server.workers", value: Double(server.workers), range: 1...100_000)
        try check("server.mean", value: server.mean, range: 0.000_001...3_600)
        try check("server.maxWait", value: server.maxWait, range: 0...86_400)
        try check("server.refusal", value: Double(server.refusal), range: 400...599)
        try check("attemptTimeout", value: attemptTimeout, range: 0.001...86_400)
        try check("deadline", value: deadline, range: 0.001...86_400)
        if let attempts { try check("attempts", value: Double(attempts), range: 1...1_000) }
        guard !seeds.isEmpty else {
            throw StormScenarioError("seeds", message: "there are none; give one for each run.")
        }
        for (index, fault) in faults.enumerated() { try check(fault, at: "faults[\(index)]") }
    }

    private func check(_ fault: StormFault, at place: String) throws(StormScenarioError) {
        try check("\(place).from", value: fault.from, range: 0...86_400)
        try check("\(place).to", value: fault.to, range: 0...86_400)
        guard fault.from < fault.to else {
            throw StormScenarioError("\(place).to", message: "\(fault.to) is not after the start at \(fault.from).")
        }
        try check("\(place).share", value: fault.share, range: 0...1)
        if let resources = fault.resources {
            try check("\(place).resources", value: Double(resources), range: 1...1_000_000)
        }
        switch fault.kind {
        case .down, .once: break
        case .slow: try check("\(place).amount", value: fault.amount, range: 0.001...1_000_000)
        case .err: try check("\(place).amount", value: fault.amount, range: 0...1)
        case .throttle, .unavailable: try check("\(place).amount", value: fault.amount, range: 0...86_400)
        default:
            let known = StormFault.Kind.all.map(\.rawValue).joined(separator: ", ")
            throw StormScenarioError(
                "\(place).kind",
                message: "'\(fault.kind.rawValue)' is not known; the kinds are \(known)."
            )
        }
    }

    private func check(
        _ property: String,
        value: Double,
        range: ClosedRange<Double>
    ) throws(StormScenarioError) {
        guard range.contains(value) else {
            throw StormScenarioError(
                property,
                message: "\(value) is not between \(range.lowerBound) and \(range.upperBound)."
            )
        }
    }

    /// The server is down for 30 s at 70 % of its capacity, then healthy: how much load do retries add, and what follows?
    public static let outage: StormScenario = {
        var scenario = StormScenario("outage", rate: 700)
        scenario.horizon = 120
        scenario.faults = [StormFault(.down, from: 30, to: 60)]
        return scenario
    }()

    /// Service takes 2.5 times as long for 10 s at 70 % of the capacity: do the clients ever recover?
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

    /// A share of the requests fails at random, for a minute, at 30 % of the capacity.
    ///
    /// - Parameter percent: the percentage.
    public static func brownout(_ percent: Double) -> StormScenario {
        let name = percent == percent.rounded() ? "\(Int(max(0, min(percent, 100))))" : "\(percent)"
        var scenario = StormScenario("brownout-\(name)", rate: 300)
        scenario.faults = [StormFault(.err, from: 0, to: 60, amount: percent / 100)]
        return scenario
    }

    /// 1,000 clients are told at the same time to return in 5 s: who is early, and do they return together?
    public static let advisedHerd: StormScenario = {
        var scenario = StormScenario("advised-herd", burst: 1_000)
        scenario.processes = 1_000
        scenario.faults = [StormFault(.throttle, from: 0, to: 1, amount: 5)]
        scenario.deadline = 60
        return scenario
    }()

    /// 500 calls per second to a server that answers 429 with Retry-After: 5 for 20 s: how many are sent although the client knows?
    public static let gate: StormScenario = {
        var scenario = StormScenario("gate", rate: 500)
        scenario.horizon = 60
        scenario.faults = [StormFault(.throttle, from: 10, to: 30, amount: 5)]
        return scenario
    }()

    /// S1: this many calls at once from a client that has just started; each has one failure.
    ///
    /// - Parameter calls: how many.
    public static func blip(_ calls: Int) -> StormScenario {
        var scenario = StormScenario("blip-\(calls)", arrivals: [Arrival(at: 0, calls: calls)])
        scenario.faults = [StormFault(.once, from: 0, to: 60)]
        scenario.server.workers = 500
        scenario.seeds = Array(1...10)
        return scenario
    }

    /// S2: the same after a hundred successful calls and ten idle minutes.
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

    /// S3: one client that makes ten calls every ten seconds, while 30 % fail at random.
    public static let app: StormScenario = {
        var scenario = StormScenario("app", rate: 1)
        scenario.processes = 1
        (scenario.batch, scenario.batchSpread, scenario.period) = (10, 0.05, 10)
        scenario.horizon = 20_000
        scenario.faults = [StormFault(.err, from: 0, to: 20_000, amount: 0.3)]
        scenario.server.workers = 500
        return scenario
    }()

    /// S4: 20,000 clients that make ten calls every 200 s, while the server is down for a minute.
    public static let apps: StormScenario = {
        var scenario = StormScenario("apps", rate: 1_000)
        scenario.processes = 20_000
        (scenario.batch, scenario.batchSpread) = (10, 0.1)
        scenario.horizon = 130
        scenario.faults = [StormFault(.down, from: 30, to: 90)]
        scenario.server.workers = 72
        return scenario
    }()

    /// S5: one resource of 101 always answers 503 with Retry-After: 1; one client, 100 calls per second.
    public static let oneResource: StormScenario = {
        var scenario = StormScenario("one-resource", rate: 100)
        scenario.processes = 1
        scenario.resources = 101
        scenario.horizon = 120
        scenario.faults = [StormFault(.unavailable, from: 0, to: 120, amount: 1, resources: 1)]
        scenario.server.workers = 500
        return scenario
    }()

    /// S6: 500 calls per second from one client to a server that answers each one with 429 and Retry-After: 5 for 20 s.
    public static let quota: StormScenario = {
        var scenario = StormScenario("quota", rate: 500)
        scenario.processes = 1
        scenario.resources = 100
        scenario.horizon = 60
        scenario.faults = [StormFault(.throttle, from: 10, to: 30, amount: 5)]
        scenario.server.workers = 500
        return scenario
    }()

    /// S7: the load of quickstart: 8 % fail at random, one answer in 300 with Retry-After: 1.
    ///
    /// - Parameter advises: whether there is a Retry-After; false is for comparison.
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

    /// The study: what many clients do to a server (outage, slow server, brownouts of 1, 5, 10, 30, 50 and 90 %, herd, advised
    /// herd, gate), and what happens to small clients and to other resources (S1 to S7).
    public static let study: [StormScenario] =
        [outage, slow] + [1, 5, 10, 30, 50, 90].map { brownout($0) } + [herd, advisedHerd, gate]
        + [blip(8), blip(32), idleBlip(32), drainedBlip(32), app, apps, oneResource, quota, quickstart()]
        + [quickstart(advises: false)]
}

extension StormScenario: Codable {
    private enum CodingKeys: String, CodingKey {
        case name, rate, burst, arrivals, batch, batchSpread, period, resources, processes, horizon, warmUp, faults
        case server, attemptTimeout, deadline, attempts, seeds
    }

    /// Decodes a scenario; the caller should call ``validate()``.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        name = try container.decode(String.self, forKey: .name)
        rate = try container.decodeIfPresent(Double.self, forKey: .rate)
        burst = try container.decodeIfPresent(Int.self, forKey: .burst)
        arrivals = try container.decodeIfPresent([Arrival].self, forKey: .arrivals) ?? arrivals
        batch = try container.decodeIfPresent(Int.self, forKey: .batch) ?? batch
        batchSpread = try container.decodeIfPresent(Double.self, forKey: .batchSpread) ?? batchSpread
        period = try container.decodeIfPresent(Double.self, forKey: .period)
        resources = try container.decodeIfPresent(Int.self, forKey: .resources) ?? resources
        processes = try container.decodeIfPresent(Int.self, forKey: .processes) ?? processes
        horizon = try container.decodeIfPresent(Double.self, forKey: .horizon) ?? horizon
        warmUp = try container.decodeIfPresent(Double.self, forKey: .warmUp) ?? warmUp
        faults = try container.decodeIfPresent([StormFault].self, forKey: .faults) ?? faults
        server = try container.decodeIfPresent(Server.self, forKey: .server) ?? server
        attemptTimeout = try container.decodeIfPresent(Double.self, forKey: .attemptTimeout) ?? attemptTimeout
        deadline = try container.decodeIfPresent(Double.self, forKey: .deadline) ?? deadline
        attempts = try container.decodeIfPresent(Int.self, forKey: .attempts)
        seeds = try container.decodeIfPresent([UInt64].self, forKey: .seeds) ?? seeds
    }
}

extension StormScenario.Server: Codable {
    private enum CodingKeys: String, CodingKey {
        case workers, mean, maxWait, refusal
    }

    /// Decodes a server; omitted properties have their defaults.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        workers = try container.decodeIfPresent(Int.self, forKey: .workers) ?? workers
        mean = try container.decodeIfPresent(Double.self, forKey: .mean) ?? mean
        maxWait = try container.decodeIfPresent(Double.self, forKey: .maxWait) ?? maxWait
        refusal = try container.decodeIfPresent(Int.self, forKey: .refusal) ?? refusal
    }
}

/// An invalid value in a scenario, and what is valid.
public struct StormScenarioError: LocalizedError, Sendable, Hashable, CustomStringConvertible {
    /// The property as named in scenario files, such as `server.workers`.
    public let property: String
    /// What is wrong with it and what to write instead.
    public let message: String

    init(_ property: String, message: String) {
        self.property = property
        self.message = message
    }

    public var description: String { "\(property): \(message)" }
    public var errorDescription: String? { description }
}

/// A temporary fault of a simulated server.
public struct StormFault: Sendable, Hashable, Codable {
    /// The kind of fault.
    public struct Kind: RawRepresentable, Sendable, Hashable, Codable {
        /// The word in scenario files.
        public let rawValue: String

        /// A kind from its word.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// Every request is refused at once.
        public static let down = Kind(rawValue: "down")
        /// Requests that begin during the fault take `amount` times as long.
        public static let slow = Kind(rawValue: "slow")
        /// A share of `amount` (0 to 1) of the requests is refused at once, at random.
        public static let err = Kind(rawValue: "err")
        /// Every request is refused with 429 and `Retry-After: amount` (whole seconds) at once.
        public static let throttle = Kind(rawValue: "throttle")
        /// Every request is refused with 503 and `Retry-After: amount` (whole seconds) at once.
        public static let unavailable = Kind(rawValue: "unavailable")
        /// The first attempt of every call is refused at once, and no other.
        public static let once = Kind(rawValue: "once")

        static let all: [Kind] = [.down, .slow, .err, .throttle, .unavailable, .once]
    }

    /// The kind of fault.
    public var kind: Kind
    /// When it begins, in seconds.
    public var from: Double
    /// When it ends, in seconds.
    public var to: Double
    /// How severe it is, in the kind's own measure; 0 for `down` and `once`.
    public var amount: Double
    /// The share of requests that it affects, at random; 1 by default.
    public var share = 1.0
    /// How many of the scenario's resources it affects, from the first; nil, the default: all.
    public var resources: Int?

    /// A fault.
    public init(
        _ kind: Kind,
        from: Double,
        to: Double,
        amount: Double = 0,
        share: Double = 1,
        resources: Int? = nil
    ) {
        self.kind = kind
        self.from = from
        self.to = to
        self.amount = amount
        self.share = share
        self.resources = resources
    }

    /// Decodes a fault; `amount`, `share` and `resources` are optional.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        kind = try container.decode(Kind.self, forKey: .kind)
        from = try container.decode(Double.self, forKey: .from)
        to = try container.decode(Double.self, forKey: .to)
        amount = try container.decodeIfPresent(Double.self, forKey: .amount) ?? 0
        share = try container.decodeIfPresent(Double.self, forKey: .share) ?? 1
        resources = try container.decodeIfPresent(Int.self, forKey: .resources)
    }

    /// Whether it is active at a time, for a resource.
    func isActive(at seconds: Double, for resource: Int) -> Bool {
        from <= seconds && seconds < to && resources.map { resource < $0 } ?? true
    }
}
