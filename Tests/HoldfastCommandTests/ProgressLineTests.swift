// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastCommand
import HoldfastTestKit
import Testing

@Suite("The progress line", .timeLimit(.minutes(20)))
struct ProgressLineTests {
    /// What was drawn, one string for each time.
    private static func drawn(_ recorded: RecordedConsole) -> [String] {
        recorded.error.split(separator: "\r").map(String.init)
    }

    @Test("On a terminal, one line is redrawn over the one before and cleared at the end")
    func terminal() {
        let recorded = RecordedConsole(errorIsTerminal: true)
        let line = ProgressLine(on: recorded.console, interval: .zero)
        line.draw(0, text: "a long text")
        line.draw(0.5, text: "short")
        line.draw(nil, text: "nobody knows")
        line.clear()
        line.clear()
        let bar = String(repeating: "#", count: 12) + String(repeating: ".", count: 12)
        let texts = [
            "[" + String(repeating: ".", count: 24) + "] 0% a long text", "[\(bar)] 50% short     ",
            "nobody knows                        ", String(repeating: " ", count: 12),
        ]
        #expect(Self.drawn(recorded) == texts)
        #expect(!recorded.error.contains("\n"))
        #expect(recorded.bytes.isEmpty)
    }

    @Test("A fraction below 0 or above 1 draws a whole bar, and no line is wider than the terminal")
    func bounds() {
        let recorded = RecordedConsole(errorIsTerminal: true)
        let line = ProgressLine(on: recorded.console, interval: .zero)
        line.draw(-1, text: "x")
        line.draw(7, text: String(repeating: "y", count: 200))
        #expect(Self.drawn(recorded).first == "[" + String(repeating: ".", count: 24) + "] 0% x")
        #expect(Self.drawn(recorded).last?.hasPrefix("[" + String(repeating: "#", count: 24) + "] 100% yyy") == true)
        #expect(Self.drawn(recorded).allSatisfy { $0.count <= 79 })
    }

    @Test("A line is not redrawn too soon")
    func interval() {
        let recorded = RecordedConsole(errorIsTerminal: true)
        let line = ProgressLine(on: recorded.console, interval: .seconds(3_600))
        for step in 0..<1_000 { line.draw(nil, text: "\(step)") }
        #expect(Self.drawn(recorded) == ["0"])
    }

    @Test("Nothing is written if standard error is not a terminal")
    func noTerminal() {
        let recorded = RecordedConsole()
        let line = ProgressLine(on: recorded.console, interval: .zero)
        line.draw(0.5, text: "x")
        line.clear()
        #expect(recorded.error.isEmpty)
    }

    @Test("A meter shows what several tasks count, and zero steps do not divide by zero", arguments: [0, 1, 400])
    func meter(_ total: Int) async {
        let recorded = RecordedConsole(errorIsTerminal: true)
        let line = ProgressLine(on: recorded.console, interval: .zero)
        let meter = ProgressMeter(total: total, on: line) { "\($0) of \(total)" }
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<max(1, total / 4) {
                group.addTask { meter.advance(by: total / max(1, total / 4)) }
            }
        }
        #expect(recorded.error.contains("100% \(total) of \(total)"))
    }
}
