// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

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
