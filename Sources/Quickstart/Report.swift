// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import HoldfastCommand

/// What the program prints at the end: the runs and their parameters.
struct Report: Sendable, Encodable {
    /// The runs, in order.
    let runs: [RunResult]
    /// The seed of all random choices.
    let seed: UInt64
    /// How many calls were in flight at once.
    let concurrency: Int
    /// How many resources there were.
    let resources: Int
    /// The share of requests that the built-in origin failed; nil with URLs.
    let failShare: Double?
    /// The URLs; none for the built-in origin.
    let urls: [String]

    /// The report of runs made with `arguments`.
    init(_ runs: [RunResult], arguments: Arguments) {
        self.runs = runs
        seed = arguments.seed
        concurrency = arguments.concurrency
        resources = arguments.urls.isEmpty ? arguments.resources : arguments.urls.count
        failShare = arguments.urls.isEmpty ? arguments.failShare : nil
        urls = arguments.urls.map(\.absoluteString)
    }

    /// The report as one JSON object, keys in alphabetical order, ending with a line feed.
    func json() throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        return String(decoding: try encoder.encode(self), as: UTF8.self) + "\n"
    }

    /// The report for people: the table, and below it some sentences about what the cache saved.
    var text: String {
        ReportTable(runs).text + "\n" + sentences.joined(separator: "\n") + "\n"
    }

    private var sentences: [String] {
        guard let bare = runs.first(where: { !$0.cached }), let cold = runs.first(where: \.cached) else { return [] }
        var sentences = [
            "The cache answered \(cold.hits) of \(cold.calls) calls itself, \(cold.revalidated) after a 304, and "
                + "\(cold.collapsed) with another call's exchange: "
                + "\(comparison(cold, with: bare)), and \(Quantity.bytes(cold.bytesSaved)) were not sent over the network. "
                + "Its hits saved \(Quantity.time(cold.timeSavedms)) of waiting for the origin."
        ]
        if let warm = runs.last, warm.name != cold.name {
            sentences.append("Restarted with its disk cache: \(comparison(warm, with: bare)).")
        }
        if bare.failed > 0, let retried = runs.first(where: { $0.name == "retries" }) {
            sentences.append("Without retries \(bare.failed) calls failed; with them \(retried.failed).")
        }
        let failures = runs.reduce(0) { $0 + $1.storeFailures }
        if failures > 0 {
            sentences.append("The store failed \(failures) times, and the network was used instead. Is the disk full?")
        }
        return sentences
    }

    private func comparison(_ run: RunResult, with bare: RunResult) -> String {
        let change = bare.sent > 0 ? 100 * (1 - Double(run.sent) / Double(bare.sent)) : 0
        let words = change < 0 ? "\(Int(-change.rounded())) % more" : "\(Int(change.rounded())) % fewer"
        return "\(run.sent) requests sent where the bare client sent \(bare.sent) (\(words))"
    }
}

/// The runs as rows of text with aligned columns.
struct ReportTable: Sendable {
    /// The texts of the head.
    static let head = [
        "run", "calls", "sent", "failed", "hit rate", "byte hit rate", "bytes saved", "p50", "p99",
    ]

    private let runs: [RunResult]

    /// A table with a row for each run.
    init(_ runs: [RunResult]) {
        self.runs = runs
    }

    /// The table, with a line feed after each row; values that need a cache are dashes in a run without one.
    var text: String {
        let figures = Array(repeating: TextTable.Alignment.right, count: ReportTable.head.count - 1)
        var table = TextTable(ReportTable.head, alignments: [.left] + figures)
        for run in runs { table.add(cells(of: run)) }
        return table.text()
    }

    private func cells(of run: RunResult) -> [String] {
        let cache =
            run.cached
            ? [Quantity.percent(run.hitRatio), Quantity.percent(run.byteHitRatio), Quantity.bytes(run.bytesSaved)]
            : ["–", "–", "–"]
        return [run.name, "\(run.calls)", "\(run.sent)", "\(run.failed)"] + cache
            + [Quantity.time(run.p50ms), Quantity.time(run.p99ms)]
    }
}

/// Numbers with units for people.
enum Quantity {
    /// Bytes, in B, KiB, MiB or GiB.
    static func bytes(_ count: Int) -> String {
        var value = Double(count)
        var unit = "B"
        for larger in ["KiB", "MiB", "GiB"] where abs(value) >= 1_024 {
            value /= 1_024
            unit = larger
        }
        return unit == "B" ? "\(count) B" : "\(tenths(value)) \(unit)"
    }

    /// A share, in percent.
    static func percent(_ share: Double) -> String {
        "\(tenths(100 * share)) %"
    }

    /// Milliseconds, in µs, ms or s.
    static func time(_ milliseconds: Double) -> String {
        if milliseconds < 1 { return "\(Int((milliseconds * 1_000).rounded())) µs" }
        if milliseconds < 1_000 { return "\(tenths(milliseconds)) ms" }
        return "\(tenths(milliseconds / 1_000)) s"
    }

    /// One decimal, whatever the locale.
    private static func tenths(_ value: Double) -> String {
        let tenths = (abs(value) * 10).rounded()
        guard tenths.isFinite, tenths < 1e15 else { return "\(value)" }
        let whole = Int(tenths)
        return "\(value < 0 ? "-" : "")\(whole / 10).\(whole % 10)"
    }
}
