// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import HoldfastCommand

/// What the program prints at the end.
struct Report: Sendable {
    /// The runs, in order.
    let results: [RunResult]
    /// Clients that were not run because their traits are off.
    let skipped: [ClientKind]

    /// The runs as one JSON object in the format of all benchmarks here, ending with a line feed.
    func json() throws -> String {
        struct Row: Encodable {
            let `case`: String
            let subject: String
            let value: Double
            let unit: String
        }
        struct Skipped: Encodable {
            let client: String
            let needs: String
        }
        struct All: Encodable {
            let results: [Row]
            let skipped: [Skipped]
        }
        let rows = results.flatMap { result in
            Report.figures(of: result).map { name, value, unit in
                Row(case: "\(result.kind.rawValue)-\(name)", subject: result.side.rawValue, value: value, unit: unit)
            }
        }
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        let all = All(
            results: rows,
            skipped: skipped.map { Skipped(client: $0.rawValue, needs: $0.missingTrait ?? "") }
        )
        return String(decoding: try encoder.encode(all), as: UTF8.self) + "\n"
    }

    /// The runs as a table for people, and what was skipped.
    var text: String {
        let head = [
            "client", "run", "calls", "requests", "bytes", "304s", "429s", "failed", "time", "bytes saved",
            "time saved",
        ]
        let figures = Array(repeating: TextTable.Alignment.right, count: head.count - 2)
        var table = TextTable(head, alignments: [.left, .left] + figures)
        for result in results { table.add(Report.cells(of: result)) }
        let notes = skipped.map { "\($0.rawValue) needs a build with --traits \($0.missingTrait ?? "")\n" }
        return table.text() + notes.joined()
    }

    private static func cells(of result: RunResult) -> [String] {
        let ledger = result.ledger
        let saved =
            result.side == .after ? [kibibytes(result.bytesSaved), seconds(result.timeSaved)] : ["–", "–"]
        return [
            result.kind.rawValue, result.side.rawValue, "\(result.outcome.calls)", "\(ledger.requests)",
            kibibytes(ledger.bytes), "\(ledger.notModified)", "\(ledger.tooManyRequests)", "\(result.outcome.failed)",
            seconds(result.duration),
        ] + saved
    }

    private static func figures(of result: RunResult) -> [(String, Double, String)] {
        [
            ("calls", Double(result.outcome.calls), "calls"),
            ("requests", Double(result.ledger.requests), "requests"),
            ("bytes", Double(result.ledger.bytes), "bytes"),
            ("not-modified", Double(result.ledger.notModified), "responses"),
            ("too-many-requests", Double(result.ledger.tooManyRequests), "responses"),
            ("failed", Double(result.outcome.failed), "calls"),
            ("time", result.duration / .milliseconds(1), "ms"),
            ("bytes-saved", Double(result.bytesSaved), "bytes"),
            ("time-saved", result.timeSaved / .milliseconds(1), "ms"),
        ]
    }

    private static func kibibytes(_ bytes: Int) -> String { "\(tenths(Double(bytes) / 1_024)) KiB" }

    private static func seconds(_ duration: Duration) -> String { "\(tenths(duration / .seconds(1))) s" }

    /// One decimal, whatever the locale.
    private static func tenths(_ value: Double) -> String {
        let tenths = Int((value * 10).rounded())
        return "\(tenths / 10).\(tenths % 10)"
    }
}

/// What one run cost.
struct RunResult: Sendable {
    let kind: ClientKind
    let side: ClientRun.Side
    /// What the service counted.
    let ledger: ServiceLedger
    /// What the people got.
    let outcome: Dashboard.Outcome
    /// The time of the whole job.
    let duration: Duration
    /// What the cache saved; 0 in the run before.
    let bytesSaved: Int
    let timeSaved: Duration
}
