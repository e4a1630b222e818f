// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Testing

@testable import WeatherExample

@Suite("The report of the weather example")
struct ReportTests {
    static func result(_ side: ClientRun.Side) -> RunResult {
        var ledger = ServiceLedger()
        ledger.current = 12
        ledger.stations = 3
        ledger.bytes = 2_048
        ledger.notModified = 4
        ledger.tooManyRequests = 5
        var outcome = Dashboard.Outcome()
        outcome.calls = 20
        outcome.failed = 6
        return RunResult(
            kind: .urlSession,
            side: side,
            ledger: ledger,
            outcome: outcome,
            duration: .milliseconds(1_250),
            bytesSaved: 1_024,
            timeSaved: .milliseconds(340)
        )
    }

    @Test("Numbers are in their columns, and the first run cannot save anything")
    func table() {
        let text = Report(results: [Self.result(.before), Self.result(.after)], skipped: [.generated]).text
        let lines = text.split(separator: "\n").map { $0.split(separator: " ").map(String.init) }
        #expect(lines[1] == ["urlsession", "before", "20", "15", "2.0", "KiB", "4", "5", "6", "1.3", "s", "–", "–"])
        #expect(
            lines[2] == [
                "urlsession", "after", "20", "15", "2.0", "KiB", "4", "5", "6", "1.3", "s", "1.0", "KiB", "0.3", "s",
            ]
        )
        #expect(lines[3].prefix(2) == ["generated", "needs"])
    }

    @Test("A ledger's growth is the difference field by field")
    func growth() {
        var later = ServiceLedger()
        later.stations = 5
        later.bytes = 10
        var earlier = ServiceLedger()
        earlier.stations = 2
        earlier.bytes = 4
        let grown = later.since(earlier)
        #expect(grown.stations == 3)
        #expect(grown.bytes == 6)
        #expect(grown.requests == 3)
    }

    @Test("A response that changes is a contradiction")
    func contradictions() {
        let question = Question(subject: .stations, language: "en")
        var one = Dashboard.Outcome()
        one.note(question, data: .init([1]))
        var other = Dashboard.Outcome()
        other.note(question, data: .init([2]))
        other.note(question, data: nil)
        one.add(other)
        #expect(one.contradictions == 1)
        #expect(one.calls == 3)
        #expect(one.failed == 1)
    }
}
