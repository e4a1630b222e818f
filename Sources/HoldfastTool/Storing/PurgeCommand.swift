// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    internal import ArgumentParser
    internal import Foundation
    internal import Holdfast
    internal import HoldfastCommand
    internal import HoldfastSemantics
    internal import HoldfastStorage

    /// `holdfast cache purge`.
    struct PurgeCommand: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "purge",
            abstract: "Remove responses from a cache on disk that no process has open.",
            discussion: """
                What is removed is removed for good, pinned responses included. While a process has the cache open the purge is refused \
                and that process is named; a proxy at work purges through its inspector.

                Examples:
                  holdfast cache purge -d cache --url https://api.example/v1/news
                  holdfast cache purge -d cache --prefix https://api.example/v1/ --stale --dry-run
                  holdfast cache purge -d cache --older-than 30d --larger-than 10MB
                  holdfast cache purge -d cache --all --yes
                """
        )

        @OptionGroup var location: CacheLocation
        @OptionGroup(title: "Which responses (all that is asked for must fit)") var filter: EntryFilter

        @Flag(help: "Everything; asks first on a terminal, and needs --yes elsewhere.")
        var all = false

        @Flag(name: [.customShort("y"), .long], help: "Do not ask.")
        var yes = false

        @Flag(help: "Say what would be removed and remove nothing.")
        var dryRun = false

        func validate() throws {
            if all, !filter.isEmpty { throw ValidationError("--all takes everything; leave the other filters out.") }
            if !all, filter.isEmpty {
                throw ValidationError("Say which responses: --url, --prefix, --stale, …, or --all.")
            }
        }

        func run() async throws {
            try await run(on: .standard, confirm: Self.ask)
        }

        /// - Parameters:
        ///   - console: where it tells what it did.
        ///   - now: what staleness is judged by.
        ///   - confirm: asks the question; nil where nobody is there to answer.
        func run(
            on console: Console,
            now: Timestamp = SystemClock().timestamp,
            confirm: (_ question: String) async -> Bool?
        ) async throws {
            // What is no cache is told before anything is made there.
            let opened = try await location.read()
            if dryRun { return try await tell(opened, on: console, now: now) }
            let (capacity, count) = (opened.reader.fittingCapacity, opened.reader.statistics.entryCount)
            await opened.cache.close()
            if all, !yes {
                switch await confirm("Remove all \(count) entries of \(location.url.path)?") {
                case true?: break
                case false?: throw CommandFailure("nothing was removed")
                case nil: throw CommandFailure.usage("--all needs --yes where nobody can be asked")
                }
            }
            do throws(StoreError) {
                let store = try await DiskStore.open(
                    directory: location.url.path,
                    capacity: capacity,
                    now: StoreInstant(milliseconds: now.millisecondsSinceEpoch)
                )
                let removed: Int?
                do throws(StoreError) { removed = try await purge(store, now: now) } catch {
                    await store.close()
                    throw error
                }
                await store.close()
                console.output("removed \(removed ?? 0) of \(count) entries\n")
            } catch {
                throw CommandFailure(error)
            }
        }

        private func purge(_ store: DiskStore, now: Timestamp) async throws(StoreError) -> Int? {
            if all { return try await store.purge(.all, now: StoreInstant(milliseconds: now.millisecondsSinceEpoch)) }
            // Judged when the command line was.
            guard let predicate = try? filter.predicate() else { return 0 }
            return try await HTTPCache(store: store, options: location.options).remove(.matching(predicate), now: now)
        }

        private func tell(_ opened: ReadCache, on console: Console, now: Timestamp) async throws {
            let selection: CacheSelection = all ? .all : .matching(try filter.predicate())
            var (count, bytes) = (0, 0)
            do throws(StoreError) {
                for try await info in opened.cache.entries(selection, now: now) {
                    count += 1
                    bytes = bytes.addingReportingOverflow(info.storedBytes ?? 0).partialValue
                }
            } catch {
                throw CommandFailure(error)
            }
            console.output(
                "would remove \(count) of \(opened.reader.statistics.entryCount) entries, \(ByteCount(max(0, bytes)))\n"
            )
            opened.tellSealed(on: console)
            await opened.cache.close()
        }

        private static func ask(_ question: String) async -> Bool? {
            guard isatty(STDIN_FILENO) == 1, isatty(STDERR_FILENO) == 1 else { return nil }
            Console.standard.error(question + " [y/N] ")
            // A thread of its own: an answer may take for ever.
            let answer = await withCheckedContinuation { continuation in
                Thread { continuation.resume(returning: readLine() ?? "") }.start()
            }
            return ["y", "yes"].contains(answer.trimmingCharacters(in: .whitespaces).lowercased())
        }
    }
#endif
