// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Why the program cannot go on: one line for standard error, and the status to exit with.
struct CommandFailure: Error, Equatable, CustomStringConvertible {
    /// What is wrong and what to do about it; never more than one line.
    let description: String
    /// 64 for a wrong command line or a trait that is off, 1 for what the machine or the network refused.
    let exitStatus: Int32

    private init(_ text: String, exitStatus: Int32) {
        description = text.split(whereSeparator: \.isNewline).joined(separator: " ")
        self.exitStatus = exitStatus
    }

    /// The command line is wrong.
    static func usage(_ text: String) -> CommandFailure {
        CommandFailure(text + " (weather-example --help tells more)", exitStatus: 64)
    }

    /// The service cannot be started or read.
    static func service(_ text: String) -> CommandFailure {
        CommandFailure(text, exitStatus: 1)
    }
}
