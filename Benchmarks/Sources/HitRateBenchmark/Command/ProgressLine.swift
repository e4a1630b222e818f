// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import Synchronization

/// A progress bar on the terminal; nothing if standard error is not a terminal.
final class ProgressLine: Sendable {
    private struct State {
        var done = 0
        var shown = -1
    }

    private let title: String
    private let total: Int
    private let write: (@Sendable (String) -> Void)?
    private let state = Mutex(State())

    /// Creates a bar for this many requests; writes nothing if `write` is nil.
    init(_ title: String, total: Int, write: (@Sendable (String) -> Void)? = ProgressLine.terminal) {
        self.title = title
        self.total = max(1, total)
        self.write = write
        advance(0)
    }

    /// Counts requests, and writes the line again at each percent.
    func advance(_ count: Int) {
        guard let write else { return }
        let percent: Int? = state.withLock { state in
            state.done += count
            let percent = min(100, state.done * 100 / total)
            if percent == state.shown { return nil }
            state.shown = percent
            return percent
        }
        guard let percent else { return }
        let filled = percent * 30 / 100
        let bar = String(repeating: "#", count: filled) + String(repeating: ".", count: 30 - filled)
        write("\r\u{1B}[K\(title) [\(bar)] \(percent) %")
    }

    /// Removes the line.
    func end() {
        write?("\r\u{1B}[K")
    }

    /// Writes to standard error; nil if it is not a terminal.
    static var terminal: (@Sendable (String) -> Void)? {
        guard isatty(STDERR_FILENO) == 1 else { return nil }
        return { text in FileHandle.standardError.write(Data(text.utf8)) }
    }
}
