// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastCommand

/// Status 64 stands for a trait that is off as well.
extension CommandFailure {
    /// The command line is wrong.
    static func usage(_ text: String) -> CommandFailure {
        CommandFailure(text + " (weather-example --help tells more)", exitStatus: 64)
    }

    /// The service cannot be started or read.
    static func service(_ text: String) -> CommandFailure {
        CommandFailure(text)
    }
}
