// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastSemantics

/// What came of one run.
public struct StormReport: Sendable, Hashable, Codable {
    /// What happened in one second of a run.
    public struct Second: Sendable, Hashable, Codable {
        /// Calls that began.
        public var begun = 0
        /// Those of them that succeeded, whenever they did.
        public var succeeded = 0
        /// Attempts sent.
        public var attempts = 0

        /// A second.
        public init(begun: Int = 0, succeeded: Int = 0, attempts: Int = 0) {
            self.begun = begun
            self.succeeded = succeeded
            self.attempts = attempts
        }
    }

    /// The scenario's name.
    public let scenario: String
    /// The seed.
    public let seed: UInt64
    /// The figures.
    public let figures: StormFigures
    /// The run second by second, from the first to the last in which anything happened.
    public let seconds: [Second]
    /// A hash over all events with their times, in hexadecimal: equal for equal runs.
    public let fingerprint: String

    init(_ scenario: StormScenario, seed: UInt64, _ book: StormWorld.Book) {
        self.scenario = scenario.name
        self.seed = seed
        fingerprint = String(book.fingerprint, radix: 16)
        seconds = StormReport.seconds(of: book)
        figures = StormFigures(scenario, book)
    }

    private static func seconds(of book: StormWorld.Book) -> [Second] {
        let last = max(book.attempts.last ?? .zero, book.calls.last?.end ?? .zero)
        var seconds = Array(repeating: Second(), count: Int(last.components.seconds) + 1)
        for attempt in book.attempts { seconds[Int(attempt.components.seconds)].attempts += 1 }
        for call in book.calls {
            seconds[Int(call.start.components.seconds)].begun += 1
            if call.succeeded { seconds[Int(call.start.components.seconds)].succeeded += 1 }
        }
        return seconds
    }
}

extension [StormReport] {
    /// The mean over the runs.
    public var figures: StormFigures { StormFigures(meanOf: map(\.figures)) }
}
