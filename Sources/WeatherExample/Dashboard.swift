// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation

/// The job: several people look several times at all stations.
struct Dashboard: Sendable {
    /// How many people.
    let users: Int
    /// How often each of them looks at it.
    let rounds: Int
    /// Waits between two looks.
    let pause: @Sendable () async throws -> Void

    /// The result of a run.
    struct Outcome: Sendable, Equatable {
        /// Calls made.
        var calls = 0
        /// Calls that ended in an error or a status of 400 or more.
        var failed = 0
        /// The content for each question that was answered.
        var answers: [Question: Data] = [:]
        /// Questions with two different answers, although the service's data never change.
        var contradictions = 0

        mutating func note(_ question: Question, data: Data?) {
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
    /// - Throws: only `CancellationError`; calls that fail are counted.
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
            outcome.note(list, data: data)
            for station in Dashboard.stations(in: data) {
                for subject: Question.Subject in [
                    .current(station: station), .forecast(station: station, days: 3),
                    .forecast(station: station, days: 7),
                ] {
                    let question = Question(subject: subject, language: language)
                    outcome.note(question, data: try await answer(to: question, read))
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

    /// The numbers of the stations in the list; a fixed list if it could not be loaded.
    private static func stations(in data: Data?) -> [Int] {
        struct List: Decodable {
            struct Station: Decodable { let id: Int }
            let stations: [Station]
        }
        let list = data.flatMap { try? JSONDecoder().decode(List.self, from: $0) }
        return list?.stations.map(\.id) ?? Array(0..<8)
    }
}

#if canImport(FoundationNetworking)
    // On Linux, Foundation has URLRequest in a separate module.
    internal import FoundationNetworking
#endif

/// One question of the dashboard.
struct Question: Sendable, Hashable {
    /// What is requested.
    enum Subject: Sendable, Hashable {
        case stations
        case current(station: Int)
        case forecast(station: Int, days: Int)
    }

    /// What is requested.
    let subject: Subject
    /// The language of the person.
    let language: String

    /// Path and query.
    var target: String {
        switch subject {
        case .stations: "/stations"
        case .current(let station): "/stations/\(station)/current"
        case .forecast(let station, let days): "/stations/\(station)/forecast?days=\(days)"
        }
    }

    /// The question as a request to the service at `url`, with the API key `key`.
    func request(to url: URL, key: String) -> URLRequest {
        var request = URLRequest(url: URL(string: url.absoluteString + target) ?? url)
        request.setValue(language, forHTTPHeaderField: "Accept-Language")
        request.setValue(key, forHTTPHeaderField: "X-API-Key")
        return request
    }
}

#if canImport(FoundationNetworking)
    // On Linux, Foundation has URLResponse in a separate module.
    internal import FoundationNetworking
#endif

/// The response to a question.
struct Reading: Sendable, Equatable {
    /// The status; 0 if there was none.
    let status: Int
    /// The content.
    let data: Data

    init(_ data: Data, status: Int) {
        self.data = data
        self.status = status
    }

    init(_ data: Data, response: URLResponse) {
        self.init(data, status: (response as? HTTPURLResponse)?.statusCode ?? 0)
    }
}
