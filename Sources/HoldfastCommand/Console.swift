// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

package import Foundation
private import Synchronization

/// Where a program writes: what was asked for to standard output, what is said about it to standard error.
package struct Console: Sendable {
    /// Writes to standard output.
    package let write: @Sendable (Data) -> Void
    /// Writes to standard error.
    package let error: @Sendable (String) -> Void
    /// Whether standard output is a terminal.
    package let outputIsTerminal: Bool
    /// Whether standard error is a terminal, where a progress line may be drawn.
    package let errorIsTerminal: Bool
    /// How many characters a line has.
    package let width: Int
    /// What to end with where standard output took something not; nil while it takes everything.
    package let outputFailure: @Sendable () -> CommandFailure?

    /// A console of any kind; by default none of its streams is a terminal, and its lines have 80 characters.
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

    /// The process's own; the width is that of the terminal, 80 where there is none.
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

/// The process's standard output, and what was wrong with it first.
private enum StandardOutput {
    private static let errorNumber = Mutex<Int32?>(nil)

    /// Why the program is to end with a failure.
    static var failure: CommandFailure? {
        errorNumber.withLock { $0 }.map {
            CommandFailure("standard output cannot be written: \(String(cString: strerror($0)))")
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
