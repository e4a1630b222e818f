// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    internal import ArgumentParser
    internal import HoldfastCommand

    /// The command `holdfast`.
    @main
    struct HoldfastTool: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "holdfast",
            abstract:
                "An HTTP cache with retries: as a proxy, on the command line, and with tools to inspect it.",
            discussion: """
                Exit status: 0 done; 1 something failed on this machine; 64 a wrong command line; 130 interrupted. \
                A command with further statuses lists them in its own help.
                """,
            version: ToolVersion.text,
            subcommands: [ProxyCommand.self, GetCommand.self, CacheCommand.self, ReplayCommand.self]
        )

        static func main() async {
            do {
                var command = try parseAsRoot()
                if var asynchronous = command as? any AsyncParsableCommand {
                    try await asynchronous.run()
                } else {
                    try command.run()
                }
                if let failure = Console.standard.outputFailure() { throw failure }
            } catch let failure as CommandFailure {
                Console.standard.error("holdfast: \(failure)\n")
                exit(withError: ExitCode(failure.exitStatus))
            } catch {
                guard exitCode(for: error) == .validationFailure else { exit(withError: error) }
                // One line: what is wrong, and where to find more.
                let text = message(for: error).split(whereSeparator: \.isNewline).joined(separator: " ")
                Console.standard.error("holdfast: \(text) (see --help)\n")
                exit(withError: ExitCode.validationFailure)
            }
        }
    }

    /// The version of this release, for `--version`, for servers and in exports.
    ///
    /// It is the newest version in CHANGELOG.md, which a test checks.
    enum ToolVersion {
        static let text = "0.1.0"
        /// Name and version as a product of User-Agent (RFC 9110 §10.1.5).
        static let product = "holdfast/\(text)"
    }

    extension CommandFailure {
        /// The command line is wrong in a way that the argument parser does not detect.
        static func usage(_ text: String) -> CommandFailure {
            CommandFailure(text, exitStatus: 64)
        }

        /// The user pressed Control-C.
        static let interrupted = CommandFailure("interrupted", exitStatus: 130)
    }
#else
    internal import Foundation

    /// Says what is missing; the tool needs a package trait, so that a plain build fetches no packages.
    @main
    enum HoldfastTool {
        static func main() {
            let text = "holdfast: built without its trait; run it with `swift run --traits Tool holdfast`\n"
            try? FileHandle.standardError.write(contentsOf: Data(text.utf8))
            exit(64)
        }
    }
#endif
