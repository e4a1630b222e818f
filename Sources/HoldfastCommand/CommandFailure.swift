// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Why a program cannot go on: one line for standard error, and the status to exit with.
package struct CommandFailure: Error, Equatable, CustomStringConvertible {
    /// What is wrong and what to do about it; never more than one line.
    package let description: String
    /// 64 for a wrong command line, 1 for what the machine or the network refused, 130 for an interruption; a program's help tells of
    /// further ones.
    package let exitStatus: Int32

    /// A failure; the lines of `text` become one.
    package init(_ text: String, exitStatus: Int32 = 1) {
        description = text.split(whereSeparator: \.isNewline).joined(separator: " ")
        self.exitStatus = exitStatus
    }

    /// The command line of `program` is wrong.
    package static func usage(_ text: String, of program: String) -> CommandFailure {
        CommandFailure("\(text) (\(program) --help tells more)", exitStatus: 64)
    }
}
