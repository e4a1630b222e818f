// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import HoldfastSemantics

/// Clients that all want to write the same row: each reads its version, writes, and waits by a backoff if another one was faster.
///
/// The model behind the numbers that made jitter common ("Exponential Backoff And Jitter", AWS Architecture Blog, 2015): optimistic
/// locking, a network with normally distributed delays, and a server without a limit. It compares backoffs by calls and time. A
/// server without a limit says nothing about overload; use ``Storm`` for that.
public struct ContentionStudy: Sendable, Hashable {
    /// The results of several trials.
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

    /// How many clients want to write.
    public var clients: Int
    /// How they wait after a write that came too late.
    public var backoff: Backoff
    /// The mean delay of one network transmission; 10 ms by default.
    package var networkDelay: Duration = .milliseconds(10)
    /// Its standard deviation; 2 ms by default.
    package var networkDeviation: Duration = .milliseconds(2)

    /// A study; a number of clients below 1 counts as 1.
    public init(clients: Int, backoff: Backoff) {
        self.clients = max(1, clients)
        self.backoff = backoff
    }

    /// Runs trials, each from the start; the same seed gives the same result.
    ///
    /// - Parameters:
    ///   - trials: how many; less than 1 counts as 1.
    ///   - seed: the source of all random numbers.
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

/// One trial of a ``ContentionStudy``: messages between the clients and the contended row, in the order of arrival.
struct ContentionTrial {
    /// A message in transit and its recipient: the client's number, and the version if there is one.
    private enum Message {
        case read(Int)
        case version(Int, Int)
        case write(Int, Int)
        case refusal(Int)
        case success
    }

    private struct Client {
        var failures = 0
        var history = BackoffState()
    }

    private let study: ContentionStudy
    private var numbers: SimulationNumbers
    private var generator: SplitMix64
    private var clients: [Client]
    private var messages = EventQueue<Message>()
    private var version = 0
    private var calls = 0

    init(_ study: ContentionStudy, seed: UInt64) {
        self.study = study
        numbers = SimulationNumbers(seed: seed)
        generator = SplitMix64(seed: numbers.seed())
        clients = Array(repeating: Client(), count: study.clients)
    }

    /// Runs until all clients have written.
    mutating func run() -> (calls: Int, time: Duration) {
        for client in clients.indices { send(.read(client), from: .zero) }
        var end = Duration.zero
        while let (time, message) = messages.removeNext() {
            end = time
            switch message {
            case .read(let client):
                send(.version(client, version), from: time)
            case .version(let client, let seen):
                send(.write(client, seen), from: time)
            case .write(let client, let seen):
                calls += 1
                if seen == version {
                    version += 1
                    send(.success, from: time)
                } else {
                    send(.refusal(client), from: time)
                }
            case .refusal(let client):
                send(.read(client), from: time + wait(client))
            case .success:
                break
            }
        }
        return (calls, end)
    }

    private mutating func wait(_ client: Int) -> Duration {
        defer { clients[client].failures += 1 }
        return study.backoff.delay(
            retry: clients[client].failures,
            using: &generator,
            state: &clients[client].history
        )
    }

    private mutating func send(_ message: Message, from time: Duration) {
        let delay = numbers.normal(
            mean: study.networkDelay.doubleSeconds,
            deviation: study.networkDeviation.doubleSeconds
        )
        messages.add(message, at: time + Duration(boundedSeconds: abs(delay)))
    }
}
