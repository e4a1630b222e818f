// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation

#if canImport(Darwin)
    private import Darwin
#elseif canImport(Musl)
    private import Musl
#else
    private import Glibc
#endif

/// Where the program's words go.
struct Console: Sendable {
    /// Writes to standard output.
    let output: @Sendable (String) -> Void
    /// Writes to standard error.
    let error: @Sendable (String) -> Void
    /// Whether standard error is a terminal, on which a line can be rewritten.
    let errorIsTerminal: Bool

    /// The process's own streams.
    static var standard: Console {
        Console(
            output: { try? FileHandle.standardOutput.write(contentsOf: Data($0.utf8)) },
            error: { try? FileHandle.standardError.write(contentsOf: Data($0.utf8)) },
            errorIsTerminal: isatty(STDERR_FILENO) == 1
        )
    }

    /// A progress line for one run; silent where there is no terminal.
    func progressLine(of run: String, total: Int) -> ProgressLine {
        ProgressLine(run: run, total: total, write: errorIsTerminal ? error : nil)
    }
}
