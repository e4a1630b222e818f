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
