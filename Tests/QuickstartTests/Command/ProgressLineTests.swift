// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Testing

@testable import Quickstart

@Suite("The progress line", .timeLimit(.minutes(20)))
struct ProgressLineTests {
    @Test("On a terminal one line is rewritten about fifty times and vanishes at the end")
    func terminal() {
        let recording = RecordingConsole(errorIsTerminal: true)
        let line = recording.console.progressLine(of: "bare", total: 1_000)
        for _ in 0..<1_000 { line.advance() }
        line.end()
        let rewrites = recording.error.split(separator: "\r").map(String.init)
        #expect(rewrites.count == 52)
        #expect(rewrites.first == "\u{1B}[Kbare: 0 of 1000 calls")
        #expect(rewrites.dropLast().last == "\u{1B}[Kbare: 1000 of 1000 calls")
        #expect(rewrites.last == "\u{1B}[K")
        #expect(!recording.error.contains("\n"))
        #expect(recording.output.isEmpty)
    }

    @Test("Where standard error is no terminal nothing is written")
    func noTerminal() {
        let recording = RecordingConsole()
        let line = recording.console.progressLine(of: "bare", total: 10)
        for _ in 0..<10 { line.advance() }
        line.end()
        #expect(recording.error.isEmpty)
        #expect(recording.output.isEmpty)
    }

    @Test("A run of few calls, or of none, is no division by zero", arguments: [0, 1, 49])
    func few(_ total: Int) {
        let recording = RecordingConsole(errorIsTerminal: true)
        let line = recording.console.progressLine(of: "bare", total: total)
        for _ in 0..<total { line.advance() }
        line.end()
        #expect(recording.error.contains("\(total) of \(total)"))
    }
}
