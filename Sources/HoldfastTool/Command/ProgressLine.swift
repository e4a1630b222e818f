// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    internal import Synchronization

    /// One line on a terminal that is drawn anew as work goes on; nothing where standard error is no terminal.
    final class ProgressLine: Sendable {
        private let console: Console
        private let clock = ContinuousClock()
        private let last = Mutex<(drawn: ContinuousClock.Instant?, length: Int)>((nil, 0))

        init(on console: Console) {
            self.console = console
        }

        /// Draws the line, ten times a second at most.
        ///
        /// - Parameter fraction: how much is done, from 0 to 1; nil where nobody knows.
        func draw(_ fraction: Double?, _ text: @autoclosure () -> String) {
            guard console.errorIsTerminal else { return }
            let now = clock.now
            let isDue = last.withLock { last in
                if let drawn = last.drawn, drawn.duration(to: now) < .milliseconds(100) { return false }
                last.drawn = now
                return true
            }
            guard isDue else { return }
            var line = text()
            if let fraction {
                let filled = Int((min(1, max(0, fraction)) * 24).rounded())
                let bar = String(repeating: "#", count: filled) + String(repeating: ".", count: 24 - filled)
                line = "[\(bar)] \(Int((min(1, max(0, fraction)) * 100).rounded(.down)))% " + line
            }
            line = String(line.prefix(max(10, console.width - 1)))
            let blanks = last.withLock { last in
                defer { last.length = line.count }
                return max(0, last.length - line.count)
            }
            console.error("\r" + line + String(repeating: " ", count: blanks))
        }

        /// Takes the line away.
        func clear() {
            let length = last.withLock { last in
                defer { last.length = 0 }
                return last.length
            }
            if length > 0 { console.error("\r" + String(repeating: " ", count: length) + "\r") }
        }
    }
#endif
