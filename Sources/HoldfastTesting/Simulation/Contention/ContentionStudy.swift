// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import HoldfastSemantics

/// Clients that all want to write the same row: each reads its version, writes, and waits by a backoff where another one
/// was faster.
///
/// The model behind the figures that made jitter the custom ("Exponential Backoff And Jitter", AWS Architecture Blog, 2015):
/// optimistic locking, a network of normally distributed delays, a server without a limit. It tells how backoffs compare in
/// calls and time; a server without a limit says nothing about overload, which ``Storm`` is for.
public struct ContentionStudy: Sendable, Hashable {
    /// What came of some trials.
    public struct Result: Sendable, Hashable, Codable {
        /// Writes until all clients had succeeded: mean and standard deviation over the trials.
        public var calls: Double
        public var callsDeviation: Double
        /// Milliseconds until the last one had succeeded: mean and standard deviation over the trials.
        public var milliseconds: Double
        public var millisecondsDeviation: Double

        /// A result.
        public init(
            calls: Double,
            callsDeviation: Double,
            milliseconds: Double,
            millisecondsDeviation: Double
        ) {
            self.calls = calls
            self.callsDeviation = callsDeviation
            self.milliseconds = milliseconds
            self.millisecondsDeviation = millisecondsDeviation
        }
    }

    /// How many want to write.
    public var clients: Int
    /// How they wait after a write that came too late.
    public var backoff: Backoff
    /// The mean delay of one way through the network; 10 ms by default.
    public var networkDelay: Duration = .milliseconds(10)
    /// Its standard deviation; 2 ms by default.
    public var networkDeviation: Duration = .milliseconds(2)

    /// A study; a number of clients below 1 counts as 1.
    public init(clients: Int, backoff: Backoff) {
        self.clients = max(1, clients)
        self.backoff = backoff
    }

    /// Runs trials, each from the start; the same seed gives the same result.
    ///
    /// - Parameters:
    ///   - trials: how often; less than 1 counts as 1.
    ///   - seed: what all random numbers are drawn from.
    public func run(trials: Int = 100, seed: UInt64) -> Result {
        var numbers = SimulationNumbers(seed: seed)
        let ends = (0..<max(1, trials)).map { _ in
            var trial = ContentionTrial(self, seed: numbers.seed())
            return trial.run()
        }
        let (calls, callsDeviation) = Self.moments(ends.map { Double($0.calls) })
        let (milliseconds, deviation) = Self.moments(ends.map { $0.time.doubleSeconds * 1000 })
        return Result(
            calls: calls,
            callsDeviation: callsDeviation,
            milliseconds: milliseconds,
            millisecondsDeviation: deviation
        )
    }

    private static func moments(_ values: [Double]) -> (mean: Double, deviation: Double) {
        let mean = values.reduce(0, +) / Double(values.count)
        let squares = values.map { ($0 - mean) * ($0 - mean) }.reduce(0, +)
        return (mean, values.count > 1 ? (squares / Double(values.count - 1)).squareRoot() : 0)
    }
}
