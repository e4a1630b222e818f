// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

private import Synchronization

/// One line on a terminal that is redrawn as work goes on; nothing if standard error is not a terminal.
package final class ProgressLine: Sendable {
    private let console: Console
    private let interval: Duration
    private let clock = ContinuousClock()
    private let last = Mutex<(drawn: ContinuousClock.Instant?, length: Int)>((nil, 0))

    /// - Parameters:
    ///   - console: where the line is drawn.
    ///   - interval: the least time between two drawings; by default a tenth of a second.
    package init(on console: Console, interval: Duration = .milliseconds(100)) {
        self.console = console
        self.interval = interval
    }

    /// Draws the line, unless it was drawn very recently.
    ///
    /// - Parameters:
    ///   - fraction: how much is done, from 0 to 1; nil if unknown.
    ///   - text: the text of the line, made only when it is drawn.
    package func draw(_ fraction: Double?, text: @autoclosure () -> String) {
        guard console.errorIsTerminal else { return }
        let now = clock.now
        let isDue = last.withLock { last in
            if let drawn = last.drawn, drawn.duration(to: now) < interval { return false }
            last.drawn = now
            return true
        }
        guard isDue else { return }
        var line = text()
        if let fraction {
            let done = min(1, max(0, fraction))
            let filled = Int((done * 24).rounded())
            let bar = String(repeating: "#", count: filled) + String(repeating: ".", count: 24 - filled)
            line = "[\(bar)] \(Int((done * 100).rounded(.down)))% " + line
        }
        line = String(line.prefix(max(10, console.width - 1)))
        let blanks = last.withLock { last in
            defer { last.length = line.count }
            return max(0, last.length - line.count)
        }
        console.error("\r" + line + String(repeating: " ", count: blanks))
    }

    /// Removes the line.
    package func clear() {
        let length = last.withLock { last in
            defer { last.length = 0 }
            return last.length
        }
        if length > 0 { console.error("\r" + String(repeating: " ", count: length) + "\r") }
    }
}

/// Counts the steps of several tasks, and draws how many are done.
package final class ProgressMeter: Sendable {
    private let total: Int
    private let line: ProgressLine
    private let text: @Sendable (_ done: Int) -> String
    private let done = Atomic(0)

    /// - Parameters:
    ///   - total: how many steps there are.
    ///   - line: the line to draw.
    ///   - text: the text after the bar.
    package init(total: Int, on line: ProgressLine, text: @escaping @Sendable (_ done: Int) -> String) {
        self.total = total
        self.line = line
        self.text = text
    }

    /// Counts this many more steps.
    package func advance(by count: Int = 1) {
        let done = done.add(count, ordering: .relaxed).newValue
        line.draw(total > 0 ? Double(done) / Double(total) : 1, text: text(done))
    }
}
