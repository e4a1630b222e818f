// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// One line on a terminal that tells how far a run has come, and vanishes with it.
final class ProgressLine: Sendable {
    private let run: String
    private let total: Int
    private let step: Int
    private let write: (@Sendable (String) -> Void)?
    private let done = Atomic<Int>(0)

    /// A line; nothing is written where `write` is nil.
    init(run: String, total: Int, write: (@Sendable (String) -> Void)?) {
        self.run = run
        self.total = total
        self.write = write
        step = max(1, total / 50)
        show(0)
    }

    /// Counts one call more; about fifty of them rewrite the line.
    func advance() {
        let count = done.add(1, ordering: .relaxed).newValue
        if count % step == 0 { show(count) }
    }

    /// Takes the line away.
    func end() {
        write?("\r\u{1B}[K")
    }

    private func show(_ count: Int) {
        write?("\r\u{1B}[K\(run): \(count) of \(total) calls")
    }
}
