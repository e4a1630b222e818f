// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastTestKit
import Testing

@testable import Quickstart

@Suite("The report", .timeLimit(.minutes(20)))
struct ReportTests {
    func result(_ name: String, cached: Bool, sends: Int, failed: Int = 0) -> RunResult {
        RunResult(
            name: name,
            outcome: Run.Outcome(
                latencies: [.microseconds(900), .microseconds(2_100)],
                failed: failed,
                duration: .seconds(1)
            ),
            traffic: Traffic(sends: sends, bodyBytes: 100, notModified: 0),
            cache: cached ? CacheStatistics() : nil
        )
    }

    var report: Report {
        get throws {
            Report(
                [
                    result("bare", cached: false, sends: 200, failed: 9), result("retries", cached: false, sends: 210),
                    result("cache+retries", cached: true, sends: 50), result("from disk", cached: true, sends: 20),
                ],
                arguments: try Arguments(parsing: ["--seed", "77"])
            )
        }
    }

    @Test("The JSON has every documented key and the settings of the runs")
    func json() throws {
        let text = try report.json()
        let object = try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
        #expect(object["seed"] as? Int == 77)
        #expect(object["concurrency"] as? Int == 16)
        #expect(object["resources"] as? Int == 300)
        #expect(object["failShare"] as? Double == 0.08)
        let runs = try #require(object["runs"] as? [[String: Any]])
        #expect(runs.compactMap { $0["name"] as? String } == ["bare", "retries", "cache+retries", "from disk"])
        for run in runs {
            for key in [
                "calls", "sent", "failed", "hits", "revalidated", "collapsed", "misses", "bytesSaved",
                "bytesFromNetwork",
            ] {
                #expect(run[key] is Int, "\(key)")
            }
            for key in ["hitRatio", "byteHitRatio", "revalidationRatio", "timeSavedms", "p50ms", "p99ms", "seconds"] {
                #expect(run[key] is Double || run[key] is Int, "\(key)")
            }
        }
        #expect(text.hasSuffix("}\n"))
    }

    @Test("The table is aligned: rows have one length, and a run without a cache has dashes")
    func table() throws {
        let lines = ReportTable(try report.runs).text.split(separator: "\n").map(String.init)
        #expect(lines.count == 5)
        #expect(Set(lines.map(\.count)).count == 1)
        #expect(lines[0].split(separator: "  ").map { $0.trimmingCharacters(in: .whitespaces) } == ReportTable.head)
        #expect(lines[1].count { $0 == "–" } == 3)
        #expect(lines[3].count { $0 == "–" } == 0)
        #expect(lines[1].hasSuffix("900 µs  2.1 ms"))
    }

    @Test("Below the table, a sentence says what the cache and the retries saved")
    func words() throws {
        let text = try report.text
        #expect(text.contains("50 requests sent where the bare client sent 200 (75 % fewer)"))
        #expect(text.contains("20 requests sent where the bare client sent 200 (90 % fewer)"))
        #expect(text.contains("Without retries 9 calls failed; with them 0."))
    }

    @Test(
        "Bytes are shown in the unit that fits",
        arguments: [
            (0, "0 B"), (1_023, "1023 B"), (1_024, "1.0 KiB"), (1_536, "1.5 KiB"), (13_526_630, "12.9 MiB"),
            (3 << 30, "3.0 GiB"), (5_000 << 30, "5000.0 GiB"),
        ]
    )
    func bytes(_ count: Int, _ text: String) {
        #expect(Quantity.bytes(count) == text)
    }

    @Test(
        "Times are shown in the unit that fits",
        arguments: [(0, "0 µs"), (0.0345, "35 µs"), (1, "1.0 ms"), (33.04, "33.0 ms"), (1_500, "1.5 s")]
    )
    func times(_ milliseconds: Double, _ text: String) {
        #expect(Quantity.time(milliseconds) == text)
    }

    @Test("Help and mistakes end the program as a shell expects")
    func statuses() async {
        let help = RecordedConsole()
        #expect(await Quickstart.run(["--help"], on: help.console) == 0)
        #expect(help.output.hasPrefix("usage: quickstart"))
        #expect(help.error.isEmpty)
        let mistake = RecordedConsole()
        #expect(await Quickstart.run(["--json", "--bogus"], on: mistake.console) == 64)
        #expect(mistake.error.hasPrefix("quickstart: unknown option --bogus"))
        #expect(mistake.error.split(separator: "\n").count == 1)
        #expect(mistake.output.isEmpty)
    }
}
