// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    internal import HoldfastCommand

    extension CommandFailure {
        /// The command line is wrong in a way that the parser of arguments does not see.
        static func usage(_ text: String) -> CommandFailure {
            CommandFailure(text, exitStatus: 64)
        }

        /// Somebody pressed Control-C.
        static let interrupted = CommandFailure("interrupted", exitStatus: 130)
    }
#endif
