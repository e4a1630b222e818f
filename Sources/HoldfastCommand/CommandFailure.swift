// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Why a program cannot continue: one line for standard error, and the exit status.
package struct CommandFailure: Error, Equatable, CustomStringConvertible {
    /// What is wrong and what to do about it; always one line.
    package let description: String
    /// 64 for a wrong command line, 1 for errors of the machine or the network, 130 for an interruption; a program's help lists
    /// others.
    package let exitStatus: Int32

    /// Creates a failure; the lines of `text` are joined to one.
    package init(_ text: String, exitStatus: Int32 = 1) {
        description = text.split(whereSeparator: \.isNewline).joined(separator: " ")
        self.exitStatus = exitStatus
    }

    /// The command line of `program` is wrong.
    package static func usage(_ text: String, of program: String) -> CommandFailure {
        CommandFailure("\(text) (see \(program) --help)", exitStatus: 64)
    }
}
