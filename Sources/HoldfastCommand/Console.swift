// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

package import Foundation
private import Synchronization

/// Where a program writes: its results to standard output, messages about them to standard error.
package struct Console: Sendable {
    /// Writes to standard output.
    package let write: @Sendable (Data) -> Void
    /// Writes to standard error.
    package let error: @Sendable (String) -> Void
    /// Whether standard output is a terminal.
    package let outputIsTerminal: Bool
    /// Whether standard error is a terminal, where a progress line may be drawn.
    package let errorIsTerminal: Bool
    /// The width of a line in characters.
    package let width: Int
    /// The failure to end with if standard output could not be written; nil as long as it could.
    package let outputFailure: @Sendable () -> CommandFailure?

    /// Creates a console; by default none of its streams is a terminal, and lines have 80 characters.
    package init(
        write: @escaping @Sendable (Data) -> Void,
        error: @escaping @Sendable (String) -> Void,
        outputIsTerminal: Bool = false,
        errorIsTerminal: Bool = false,
        width: Int = 80,
        outputFailure: @escaping @Sendable () -> CommandFailure? = { nil }
    ) {
        self.write = write
        self.error = error
        self.outputIsTerminal = outputIsTerminal
        self.errorIsTerminal = errorIsTerminal
        self.width = width
        self.outputFailure = outputFailure
    }

    /// Writes text to standard output.
    package func output(_ text: String) {
        write(Data(text.utf8))
    }

    /// The console of the process; the width is the terminal's, or 80 if there is none.
    package static let standard = Console(
        write: { StandardOutput.write($0) },
        error: { try? FileHandle.standardError.write(contentsOf: Data($0.utf8)) },
        outputIsTerminal: isatty(STDOUT_FILENO) == 1,
        errorIsTerminal: isatty(STDERR_FILENO) == 1,
        width: terminalWidth,
        outputFailure: { StandardOutput.failure }
    )

    private static var terminalWidth: Int {
        var size = winsize()
        for stream in [STDOUT_FILENO, STDERR_FILENO] {
            if ioctl(stream, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 { return Int(size.ws_col) }
        }
        return 80
    }
}

/// The process's standard output, and the first error in writing it.
private enum StandardOutput {
    private static let errorNumber = Mutex<Int32?>(nil)

    /// The failure that the program should end with.
    static var failure: CommandFailure? {
        errorNumber.withLock { $0 }.map {
            CommandFailure("cannot write standard output: \(String(cString: strerror($0)))")
        }
    }

    static func write(_ data: Data) {
        let failure: Int32? = data.withUnsafeBytes { bytes in
            var rest = bytes[...]
            while let base = UnsafeRawBufferPointer(rebasing: rest).baseAddress, !rest.isEmpty {
                let count = Foundation.write(STDOUT_FILENO, base, rest.count)
                if count > 0 { rest = rest.dropFirst(count) } else if errno != EINTR, errno != EAGAIN { return errno }
            }
            return nil
        }
        guard let failure else { return }
        errorNumber.withLock { $0 = $0 ?? failure }
    }
}

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
