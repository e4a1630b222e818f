// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    internal import Foundation

    /// Where a command writes: what was asked for to standard output, what is said about it to standard error.
    struct Console: Sendable {
        /// Writes to standard output.
        let write: @Sendable (Data) -> Void
        /// Writes to standard error.
        let error: @Sendable (String) -> Void
        /// Whether standard output is a terminal.
        let outputIsTerminal: Bool
        /// Whether standard error is a terminal, where a progress line may be drawn.
        let errorIsTerminal: Bool
        /// How many characters a line has.
        let width: Int

        /// Writes text to standard output.
        func output(_ text: String) {
            write(Data(text.utf8))
        }

        /// The process's own; the width is that of the terminal, 80 where there is none.
        static let standard = Console(
            write: { try? FileHandle.standardOutput.write(contentsOf: $0) },
            error: { try? FileHandle.standardError.write(contentsOf: Data($0.utf8)) },
            outputIsTerminal: isatty(STDOUT_FILENO) == 1,
            errorIsTerminal: isatty(STDERR_FILENO) == 1,
            width: terminalWidth
        )

        private static var terminalWidth: Int {
            var size = winsize()
            for stream in [STDOUT_FILENO, STDERR_FILENO] {
                if ioctl(stream, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 { return Int(size.ws_col) }
            }
            return 80
        }
    }
#endif
