// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    internal import ArgumentParser

    /// `holdfast cache`: looking into a cache on disk, and taking things out of it.
    struct CacheCommand: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "cache",
            abstract: "Look into a cache on disk: list, show, count, check, purge and export what it holds.",
            discussion: """
                All but purge read the directory beside the process that has it open, and change nothing in it. purge needs it for \
                itself, and is refused with the number of that process while one has it open.

                Examples:
                  holdfast cache ls -d /var/cache/holdfast --host api.example --stale
                  holdfast cache show -d /var/cache/holdfast https://api.example/v1/news
                  holdfast cache purge -d /var/cache/holdfast --prefix https://api.example/v1 --dry-run
                  holdfast cache export -d /var/cache/holdfast -o cache.har

                Exit status: 0 done; 1 no cache, nothing stored for the URL, or refused; 2 verify found damage; 64 a wrong command line.
                """,
            subcommands: [
                ListCommand.self, ShowCommand.self, StatsCommand.self, VerifyCommand.self, PurgeCommand.self,
                ExportCommand.self,
            ]
        )
    }
#endif
