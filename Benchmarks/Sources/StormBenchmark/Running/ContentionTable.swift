// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Harness
internal import HoldfastSemantics
internal import HoldfastSimulation

/// The contention study: five algorithms, from 10 to 190 clients.
struct ContentionTable: Sendable {
    /// An algorithm of the study.
    struct Algorithm: Sendable {
        let name: String
        let backoff: Backoff
    }

    /// A base of 5 ms, at most 2 s. The first wait follows one failure, so it begins with twice the base.
    static let algorithms = [
        Algorithm(name: "none", backoff: Backoff(base: .zero, jitter: .none)),
        Algorithm(name: "exponential", backoff: doubled(.none)),
        Algorithm(name: "equal-jitter", backoff: doubled(.equal)),
        Algorithm(name: "full-jitter", backoff: doubled(.full)),
        Algorithm(
            name: "decorrelated",
            backoff: Backoff(base: .milliseconds(5), cap: .seconds(2), jitter: .decorrelated)
        ),
    ]

    static let clients = Array(stride(from: 10, through: 190, by: 10))

    private let results: [[ContentionStudy.Result]]

    /// Runs all rows, several at a time.
    static func run(trials: Int, width: Int) async -> ContentionTable {
        var results: [[ContentionStudy.Result?]] = clients.map { _ in algorithms.map { _ in nil } }
        await withTaskGroup(of: (Int, Int, ContentionStudy.Result).self) { group in
            var waiting = clients.indices.flatMap { row in algorithms.indices.map { (row, $0) } }.reversed()[...]
            func begin() {
                guard let (row, column) = waiting.popFirst() else { return }
                let study = ContentionStudy(clients: clients[row], backoff: algorithms[column].backoff)
                group.addTask { (row, column, study.run(trials: trials, seed: UInt64(row * 16 + column))) }
            }
            for _ in 0..<width { begin() }
            while let (row, column, result) = await group.next() {
                results[row][column] = result
                begin()
            }
        }
        return ContentionTable(results: results.map { $0.compactMap { $0 } })
    }

    /// Rows for programs: the calls and the time of each algorithm for each number of clients.
    var report: Report {
        var report = Report()
        for (row, clients) in Self.clients.enumerated() {
            for (column, algorithm) in Self.algorithms.enumerated() {
                let result = results[row][column]
                report.add(Figure("contention-\(clients)/calls", algorithm.name, result.calls, "calls"))
                report.add(Figure("contention-\(clients)/time", algorithm.name, result.milliseconds, "ms"))
            }
        }
        return report
    }

    /// Tables for people.
    var text: String {
        table("calls", \.calls) + "\n" + table("ms until the last client has written", \.milliseconds)
    }

    private func table(_ title: String, _ value: (ContentionStudy.Result) -> Double) -> String {
        var table = TextTable(heads: ["\(title), by number of clients"] + Self.algorithms.map(\.name))
        for (row, clients) in Self.clients.enumerated() {
            table.add(["\(clients)"] + results[row].map { TextTable.figure(value($0)) })
        }
        return table.text
    }

    private static func doubled(_ jitter: Jitter) -> Backoff {
        Backoff(base: .milliseconds(10), cap: .seconds(2), jitter: jitter)
    }
}
