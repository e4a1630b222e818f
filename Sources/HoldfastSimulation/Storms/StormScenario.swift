// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// A load, a server and what goes wrong with it: what ``Storm`` runs retriers through.
///
/// Times are in seconds of the virtual clock. As JSON every property is optional but ``name`` and one of ``rate``,
/// ``burst`` and ``arrivals``; what is left out has its default.
public struct StormScenario: Sendable, Hashable {
    /// A server without a network before it: so many workers, one queue, service times distributed exponentially.
    public struct Server: Sendable, Hashable {
        /// Requests served at a time; 50 by default.
        public var workers = 50
        /// The mean service time in seconds; 0.05 by default, which with 50 workers makes 1,000 requests a second.
        public var mean = 0.05
        /// A request that would wait longer than this is refused at once; 5 s by default.
        public var maxWait = 5.0
        /// The status of what is refused, save by a `throttle`; 503 by default.
        public var refusal = 503

        /// A server of the defaults.
        public init() {}

        /// Requests a second that it serves at best.
        public var capacity: Double { mean > 0 ? Double(workers) / mean : 0 }
    }

    /// The name, for reports.
    public var name: String
    /// Fresh calls a second of all processes together, arriving independently of each other (Poisson); nil: see ``burst``.
    public var rate: Double?
    /// So many calls within the first 10 ms and none after; nil: see ``rate``, which is not heard where both are set.
    public var burst: Int?
    /// Calls at times of their own, in place of ``rate`` and ``burst``; none by default.
    public var arrivals: [Arrival] = []
    /// So many calls arrive together in a process, ``rate`` remaining what it is; 1 by default.
    public var batch = 1
    /// The calls of a batch begin within so many seconds; 0 by default.
    public var batchSpread = 0.0
    /// The seconds between the batches of a process; nil, the default: they arrive independently, by ``rate``.
    public var period: Double?
    /// How many URLs the calls go to, each chosen evenly; 1 by default.
    public var resources = 1
    /// Client processes, each with a pipeline and a retrier factory of its own; 50 by default.
    public var processes = 50
    /// No fresh call begins after this time; 60 by default.
    public var horizon = 60.0
    /// What happens before this time is not in the figures: calls that begin before it, and attempts; 0 by default.
    public var warmUp = 0.0
    /// What goes wrong; nothing by default. Faults may overlap.
    public var faults: [StormFault] = []
    /// The server.
    public var server = Server()
    /// The time an attempt may take, in seconds; 1 by default.
    public var attemptTimeout = 1.0
    /// The time a call may take, in seconds; 10 by default.
    public var deadline = 10.0
    /// The attempts given to rules with more than one in place of their own; nil, the default: their own.
    public var attempts: Int?
    /// A run each; 1, 2, 3 by default.
    public var seeds: [UInt64] = [1, 2, 3]

    /// A scenario of the defaults with an open load of `rate` calls a second.
    public init(_ name: String, rate: Double) {
        self.name = name
        self.rate = rate
    }

    /// A scenario of the defaults with `burst` calls at once.
    public init(_ name: String, burst: Int) {
        self.name = name
        self.burst = burst
    }

    /// A scenario of the defaults, of one process, with calls at times of their own.
    public init(_ name: String, arrivals: [Arrival]) {
        self.name = name
        self.arrivals = arrivals
        processes = 1
    }

    /// Calls that begin together.
    public struct Arrival: Sendable, Hashable, Codable {
        /// When the first may begin, in seconds.
        public var at: Double
        /// How many.
        public var calls: Int
        /// They begin within so many seconds.
        public var spread: Double

        /// An arrival.
        public init(at: Double, calls: Int, spread: Double = 0.01) {
            self.at = at
            self.calls = calls
            self.spread = spread
        }
    }

    /// The calls that stop coming: there is no load whose recovery could be seen.
    var isBurst: Bool { burst != nil || !arrivals.isEmpty }

    /// From the start of the first fault to the end of the last; nil without faults.
    public var faultWindow: Range<Double>? {
        guard let start = faults.map(\.from).min(), let end = faults.map(\.to).max(), start < end else { return nil }
        return start..<end
    }
}

extension StormScenario: Codable {
    private enum CodingKeys: String, CodingKey {
        case name, rate, burst, arrivals, batch, batchSpread, period, resources, processes, horizon, warmUp, faults
        case server, attemptTimeout, deadline, attempts, seeds
    }

    /// Reads a scenario; ``validate()`` is the caller's to call.
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

    /// Reads a server; what is left out has its default.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        workers = try container.decodeIfPresent(Int.self, forKey: .workers) ?? workers
        mean = try container.decodeIfPresent(Double.self, forKey: .mean) ?? mean
        maxWait = try container.decodeIfPresent(Double.self, forKey: .maxWait) ?? maxWait
        refusal = try container.decodeIfPresent(Int.self, forKey: .refusal) ?? refusal
    }
}

/// A value in a scenario that makes no sense, and what would.
public struct StormScenarioError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The property, as it stands in scenario files, such as `server.workers`.
    public let property: String
    /// What is wrong with it and what to write instead.
    public let message: String

    init(_ property: String, _ message: String) {
        self.property = property
        self.message = message
    }

    public var description: String { "\(property): \(message)" }
}

extension StormScenario {
    /// Refuses values that make no sense, and runs that would not end within a sensible time.
    ///
    /// - Throws: ``StormScenarioError`` for the first one found, which names it.
    public func validate() throws(StormScenarioError) {
        try check("processes", Double(processes), 1...100_000)
        try check("horizon", horizon, 0.001...86_400)
        if !arrivals.isEmpty {
            for (index, arrival) in arrivals.enumerated() {
                try check("arrivals[\(index)].at", arrival.at, 0...86_400)
                try check("arrivals[\(index)].calls", Double(arrival.calls), 1...1_000_000)
                try check("arrivals[\(index)].spread", arrival.spread, 0...86_400)
            }
        } else if let burst {
            try check("burst", Double(burst), 1...1_000_000)
        } else if let rate {
            try check("rate", rate, 0.001...1_000_000)
            guard rate * horizon <= 10_000_000 else {
                throw StormScenarioError("rate", "\(rate) for \(horizon) s are more than 10 million calls; take fewer.")
            }
        } else {
            throw StormScenarioError("rate", "there is neither rate nor burst nor arrivals; set one of them.")
        }
        try check("warmUp", warmUp, 0...86_400)
        try check("batch", Double(batch), 1...100_000)
        try check("batchSpread", batchSpread, 0...86_400)
        if let period { try check("period", period, 0.001...86_400) }
        try check("resources", Double(resources), 1...1_000_000)
        try check("server.workers", Double(server.workers), 1...100_000)
        try check("server.mean", server.mean, 0.000_001...3_600)
        try check("server.maxWait", server.maxWait, 0...86_400)
        try check("server.refusal", Double(server.refusal), 400...599)
        try check("attemptTimeout", attemptTimeout, 0.001...86_400)
        try check("deadline", deadline, 0.001...86_400)
        if let attempts { try check("attempts", Double(attempts), 1...1_000) }
        guard !seeds.isEmpty else { throw StormScenarioError("seeds", "there is none; give one for each run.") }
        for (index, fault) in faults.enumerated() { try check(fault, "faults[\(index)]") }
    }

    private func check(_ fault: StormFault, _ place: String) throws(StormScenarioError) {
        try check("\(place).from", fault.from, 0...86_400)
        try check("\(place).to", fault.to, 0...86_400)
        guard fault.from < fault.to else {
            throw StormScenarioError("\(place).to", "\(fault.to) is not after the start at \(fault.from).")
        }
        try check("\(place).share", fault.share, 0...1)
        if let resources = fault.resources { try check("\(place).resources", Double(resources), 1...1_000_000) }
        switch fault.kind {
        case .down, .once: break
        case .slow: try check("\(place).amount", fault.amount, 0.001...1_000_000)
        case .err: try check("\(place).amount", fault.amount, 0...1)
        case .throttle, .unavailable: try check("\(place).amount", fault.amount, 0...86_400)
        default:
            let known = StormFault.Kind.all.map(\.rawValue).joined(separator: ", ")
            throw StormScenarioError("\(place).kind", "'\(fault.kind.rawValue)' is not known; the kinds are \(known).")
        }
    }

    private func check(
        _ property: String,
        _ value: Double,
        _ range: ClosedRange<Double>
    ) throws(StormScenarioError) {
        guard range.contains(value) else {
            throw StormScenarioError(property, "\(value) is not within \(range.lowerBound) and \(range.upperBound).")
        }
    }
}
