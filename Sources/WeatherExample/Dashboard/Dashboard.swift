// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation

/// The job: several people look several times at all stations.
struct Dashboard: Sendable {
    /// How many people.
    let users: Int
    /// How often each of them looks.
    let rounds: Int
    /// Waits between two looks.
    let pause: @Sendable () async throws -> Void

    /// What came of a run.
    struct Outcome: Sendable, Equatable {
        /// Calls made.
        var calls = 0
        /// Calls that ended in an error or a status of 400 or more.
        var failed = 0
        /// The content for each question that was answered.
        var answers: [Question: Data] = [:]
        /// Questions that had two answers, although the service never changes its mind.
        var contradictions = 0

        mutating func note(_ question: Question, _ data: Data?) {
            calls += 1
            guard let data else {
                failed += 1
                return
            }
            if let earlier = answers[question], earlier != data { contradictions += 1 }
            answers[question] = data
        }

        mutating func add(_ other: Outcome) {
            for (question, data) in other.answers {
                if let earlier = answers[question], earlier != data { contradictions += 1 }
                answers[question] = data
            }
            calls += other.calls
            failed += other.failed
            contradictions += other.contradictions
        }
    }

    /// Does the job; `read` makes one call.
    ///
    /// - Throws: `CancellationError` only; what fails a call is counted.
    func run(_ read: @escaping @Sendable (Question) async throws -> Reading) async throws -> Outcome {
        try await withThrowingTaskGroup(of: Outcome.self) { group in
            for user in 0..<users {
                group.addTask { try await look(as: user, read) }
            }
            var all = Outcome()
            for try await outcome in group { all.add(outcome) }
            return all
        }
    }

    private func look(
        as user: Int,
        _ read: @Sendable (Question) async throws -> Reading
    ) async throws -> Outcome {
        let language = user.isMultiple(of: 2) ? "en" : "de"
        var outcome = Outcome()
        for round in 0..<rounds {
            if round > 0 { try await pause() }
            let list = Question(subject: .stations, language: language)
            let data = try await answer(to: list, read)
            outcome.note(list, data)
            for station in Dashboard.stations(in: data) {
                for subject: Question.Subject in [
                    .current(station: station), .forecast(station: station, days: 3),
                    .forecast(station: station, days: 7),
                ] {
                    let question = Question(subject: subject, language: language)
                    outcome.note(question, try await answer(to: question, read))
                }
            }
        }
        return outcome
    }

    private func answer(
        to question: Question,
        _ read: @Sendable (Question) async throws -> Reading
    ) async throws -> Data? {
        try Task.checkCancellation()
        guard let reading = try? await read(question), (200..<300).contains(reading.status) else { return nil }
        return reading.data
    }

    /// The numbers of the stations in the list; those of a list that could not be loaded are known from before.
    private static func stations(in data: Data?) -> [Int] {
        struct List: Decodable {
            struct Station: Decodable { let id: Int }
            let stations: [Station]
        }
        let list = data.flatMap { try? JSONDecoder().decode(List.self, from: $0) }
        return list?.stations.map(\.id) ?? Array(0..<8)
    }
}
