// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation

/// What the program prints at the end: the runs, and what they were made with.
struct Report: Sendable, Encodable {
    /// The runs, in order.
    let runs: [RunResult]
    /// What all chance derived from.
    let seed: UInt64
    /// How many calls were in flight at once.
    let concurrency: Int
    /// How many resources there were to ask for.
    let resources: Int
    /// The share of sends that the built-in origin failed; nil with URLs.
    let failShare: Double?
    /// The URLs; none for the built-in origin.
    let urls: [String]

    /// The report of runs made with `arguments`.
    init(_ runs: [RunResult], _ arguments: Arguments) {
        self.runs = runs
        seed = arguments.seed
        concurrency = arguments.concurrency
        resources = arguments.urls.isEmpty ? arguments.resources : arguments.urls.count
        failShare = arguments.urls.isEmpty ? arguments.failShare : nil
        urls = arguments.urls.map(\.absoluteString)
    }

    /// The report as one JSON object, keys in alphabetical order, a line feed at its end.
    func json() throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        return String(decoding: try encoder.encode(self), as: UTF8.self) + "\n"
    }

    /// The report for people: the table, and beneath it what the cache saved, in words.
    var text: String {
        ReportTable(runs).text + "\n" + sentences.joined(separator: "\n") + "\n"
    }

    private var sentences: [String] {
        guard let bare = runs.first(where: { !$0.cached }), let cold = runs.first(where: \.cached) else { return [] }
        var sentences = [
            "The cache answered \(cold.hits) of \(cold.calls) calls by itself, \(cold.revalidated) after a 304, and "
                + "\(cold.collapsed) by an exchange that was under way: "
                + "\(comparison(cold, with: bare)), and \(Quantity.bytes(cold.bytesSaved)) did not cross the network. "
                + "Its hits spared \(Quantity.time(cold.timeSavedms)) of waiting for the origin."
        ]
        if let warm = runs.last, warm.name != cold.name {
            sentences.append("Started anew from its disk: \(comparison(warm, with: bare)).")
        }
        if bare.failed > 0, let retried = runs.first(where: { $0.name == "retries" }) {
            sentences.append("Without retries \(bare.failed) calls failed; with them \(retried.failed).")
        }
        let failures = runs.reduce(0) { $0 + $1.storeFailures }
        if failures > 0 {
            sentences.append("The store failed \(failures) times, and the network answered instead: is the disk full?")
        }
        return sentences
    }

    private func comparison(_ run: RunResult, with bare: RunResult) -> String {
        let change = bare.sent > 0 ? 100 * (1 - Double(run.sent) / Double(bare.sent)) : 0
        let words = change < 0 ? "\(Int(-change.rounded())) % more" : "\(Int(change.rounded())) % fewer"
        return "\(run.sent) requests sent where the bare client sent \(bare.sent) (\(words))"
    }
}
