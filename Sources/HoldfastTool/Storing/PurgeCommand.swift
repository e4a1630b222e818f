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
            abstract: "Remove responses from a disk cache, even while a proxy has it open.",
            discussion: """
                Responses are removed permanently, pinned ones included. While a proxy with --admin has the cache open, the proxy removes \
                them, also from its memory, and determines freshness with its own rules. While another process has it open, the command \
                fails and prints the id of that process.

                Examples:
                  holdfast cache purge -d cache --url https://api.example/v1/news
                  holdfast cache purge -d cache --prefix https://api.example/v1/ --stale --dry-run
                  holdfast cache purge -d cache --older-than 30d --larger-than 10MB
                  holdfast cache purge -d cache --all --yes
                """
        )

        @OptionGroup var location: CacheLocation
        @OptionGroup(title: "Which responses (all given options must match)") var filter: EntryFilter

        @Flag(help: "All responses; asks first on a terminal, otherwise needs --yes.")
        var all = false

        @Flag(name: [.customShort("y"), .long], help: "Do not ask.")
        var yes = false

        @Option(
            help: ArgumentHelp(
                "A file whose first line is the token of the proxy's --admin. (default: the proxy's own file)",
                valueName: "file"
            )
        )
        var adminToken: String?

        @Flag(help: "Show what would be removed, and remove nothing.")
        var dryRun = false

        func validate() throws {
            if all, !filter.isEmpty { throw ValidationError("--all selects everything. Leave out the other filters.") }
            if !all, filter.isEmpty {
                throw ValidationError("Specify which responses: --url, --prefix, --stale, …, or --all.")
            }
        }

        func run() async throws {
            try await run(on: .standard, confirm: Self.ask)
        }

        /// - Parameters:
        ///   - console: for the report.
        ///   - now: the time for freshness.
        ///   - confirm: asks the question; nil if no one can answer.
        func run(
            on console: Console,
            now: Timestamp = SystemClock().timestamp,
            confirm: (_ question: String) async -> Bool?
        ) async throws {
            // A directory that is not a cache is reported before anything is created there.
            let opened = try await location.read()
            if dryRun { return try await tell(opened, on: console, now: now) }
            let holder = opened.reader.holder
            let (capacity, count) = (opened.reader.fittingCapacity, opened.reader.statistics.entryCount)
            // No filter matches an encrypted entry, which must not look as if nothing were stored. For that note only, so it may fail.
            if !all { _ = try? await found(in: opened, by: .matching { _ in false }, now: now) }
            await opened.cache.close()
            if all, !yes {
                switch await confirm("Remove all \(count) entries of \(location.url.path)?") {
                case true?: break
                case false?: throw CommandFailure("nothing was removed")
                case nil: throw CommandFailure.usage("--all needs --yes if it cannot ask on a terminal")
                }
            }
            do throws(StoreError) {
                // Tried first, in case the holder has just ended.
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
                opened.tellSealed(on: console)
            } catch {
                guard error.code == .locked else { throw CommandFailure(error) }
                let holder = PurgeAtHolder(directory: location.url, process: holder, tokenFile: adminToken)
                let removed = try await holder.purge(
                    all ? nil : filter.match,
                    refusal: CommandFailure(error).description
                )
                let number = removed.map { "\($0)" } ?? "an unknown number"
                console.output(
                    "removed \(number) of \(count) entries through process \(holder.process ?? 0), which has the cache open\n"
                )
            }
        }

        private func purge(_ store: DiskStore, now: Timestamp) async throws(StoreError) -> Int? {
            if all { return try await store.purge(.all, now: StoreInstant(milliseconds: now.millisecondsSinceEpoch)) }
            // It was checked together with the command line.
            guard let predicate = try? filter.predicate() else { return 0 }
            return try await HTTPCache(store: store, options: location.options).remove(.matching(predicate), now: now)
        }

        private func found(
            in opened: ReadCache,
            by selection: CacheSelection,
            now: Timestamp
        ) async throws(CommandFailure) -> (count: Int, bytes: Int) {
            var (count, bytes) = (0, 0)
            do throws(StoreError) {
                for try await info in opened.cache.entries(selection, now: now) {
                    count += 1
                    bytes = bytes.addingReportingOverflow(info.storedBytes ?? 0).partialValue
                }
            } catch {
                throw CommandFailure(error)
            }
            return (count, bytes)
        }

        private func tell(_ opened: ReadCache, on console: Console, now: Timestamp) async throws {
            let selection: CacheSelection = all ? .all : .matching(try filter.predicate())
            let (count, bytes) = try await found(in: opened, by: selection, now: now)
            console.output(
                "would remove \(count) of \(opened.reader.statistics.entryCount) entries, \(ByteCount(max(0, bytes)))\n"
            )
            opened.tellSealed(on: console)
            await opened.cache.close()
        }

        private static func ask(_ question: String) async -> Bool? {
            guard isatty(STDIN_FILENO) == 1, isatty(STDERR_FILENO) == 1 else { return nil }
            Console.standard.error(question + " [y/N] ")
            // A separate thread, because an answer may take forever.
            let answer = await withCheckedContinuation { continuation in
                Thread { continuation.resume(returning: readLine() ?? "") }.start()
            }
            return ["y", "yes"].contains(answer.trimmingCharacters(in: .whitespaces).lowercased())
        }
    }
#endif
