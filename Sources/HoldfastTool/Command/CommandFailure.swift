// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    /// Why a command cannot go on: one line for standard error, and the status to exit with.
    struct CommandFailure: Error, Equatable, CustomStringConvertible {
        /// What is wrong and what to do about it; never more than one line.
        let description: String
        /// 64 for a wrong command line, 1 for what the machine refused, 130 for an interruption; more in the command's help.
        let exitStatus: Int32

        init(_ text: String, exitStatus: Int32 = 1) {
            description = text.split(whereSeparator: \.isNewline).joined(separator: " ")
            self.exitStatus = exitStatus
        }

        /// The command line is wrong in a way that the parser of arguments does not see.
        static func usage(_ text: String) -> CommandFailure {
            CommandFailure(text, exitStatus: 64)
        }

        /// Somebody pressed Control-C.
        static let interrupted = CommandFailure("interrupted", exitStatus: 130)
    }
#endif
