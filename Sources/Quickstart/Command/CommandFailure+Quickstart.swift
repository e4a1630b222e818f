// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastCommand
internal import HoldfastStorage

extension CommandFailure {
    /// The command line is wrong.
    static func usage(_ text: String) -> CommandFailure {
        CommandFailure(text + " (quickstart --help tells more)", exitStatus: 64)
    }

    /// A URL gave no answer.
    static func unreachable(_ url: String, _ reason: String) -> CommandFailure {
        CommandFailure("\(url) cannot be reached: \(reason)", exitStatus: 1)
    }

    /// The directory of the disk cache cannot be used.
    static func unusable(directory: String, _ error: any Error) -> CommandFailure {
        var reason = (error as? StoreError)?.message ?? "\(error)"
        if reason.hasSuffix(".") { reason.removeLast() }
        return CommandFailure(
            "the directory \(directory) cannot be used: \(reason); name another one with --directory",
            exitStatus: 1
        )
    }

    /// Anything else that ended the runs.
    static func failed(_ error: any Error) -> CommandFailure {
        CommandFailure("the runs ended early: \(error)", exitStatus: 1)
    }

    /// Somebody pressed Control-C.
    static let interrupted = CommandFailure(
        "interrupted; nothing was left behind but what --directory names",
        exitStatus: 130
    )
}
