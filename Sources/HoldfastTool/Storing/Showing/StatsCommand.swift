// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    internal import ArgumentParser
    internal import Holdfast
    internal import HoldfastCommand
    internal import HoldfastSemantics
    internal import HoldfastStorage

    /// `holdfast cache stats`.
    struct StatsCommand: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "stats",
            abstract: "Count what a cache on disk holds, and draw sizes, ages and hosts.",
            discussion: """
                How often responses were asked for is known to the process that has the cache open, and not written to the disk.

                Examples:
                  holdfast cache stats -d cache
                  holdfast cache stats -d cache --host api.example --json | jq .totals
                """
        )

        @OptionGroup var location: CacheLocation
        @OptionGroup(title: "Which responses (all that is asked for must fit)") var filter: EntryFilter

        @Flag(help: "Write one JSON object.")
        var json = false

        func run() async throws {
            try await run(on: .standard)
        }

        func run(on console: Console, now: Timestamp = SystemClock().timestamp) async throws {
            let opened = try await location.read()
            var sums = CacheSums()
            let entries = opened.cache.entries(.matching(try filter.predicate()), now: now)
            do throws(StoreError) {
                for try await info in entries {
                    sums.add(info)
                }
            } catch {
                throw CommandFailure(error)
            }
            let used = opened.reader.statistics.bytesUsed
            if json {
                console.output(sums.json(used: used, holder: opened.reader.holder).text + "\n")
            } else {
                console.output(sums.text(used: used, holder: opened.reader.holder, width: console.width))
            }
            opened.tellSealed(on: console)
            await opened.cache.close()
        }
    }
#endif
