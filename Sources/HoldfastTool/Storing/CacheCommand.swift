// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    internal import ArgumentParser
    internal import Foundation
    internal import Holdfast
    internal import HoldfastCommand
    internal import HoldfastProxy
    internal import HoldfastSemantics
    internal import HoldfastStorage

    /// `holdfast cache`: inspecting a disk cache, and removing entries from it.
    struct CacheCommand: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "cache",
            abstract: "Inspect a disk cache: list, show, count, verify, purge and export its responses.",
            discussion: """
                All commands except purge read the directory while another process has it open, and change nothing. purge sends its request to \
                that process: a proxy with --admin accepts it, otherwise purge fails and prints the id of that process.

                Examples:
                  holdfast cache ls -d /var/cache/holdfast --host api.example --stale
                  holdfast cache show -d /var/cache/holdfast https://api.example/v1/news
                  holdfast cache purge -d /var/cache/holdfast --prefix https://api.example/v1 --dry-run
                  holdfast cache export -d /var/cache/holdfast -o cache.har

                Exit status: 0 done; 1 no cache, nothing stored for the URL, or not possible; 2 verify found damage; 64 a wrong command line.
                """,
            subcommands: [
                ListCommand.self, ShowCommand.self, StatsCommand.self, VerifyCommand.self, PurgeCommand.self,
                ExportCommand.self,
            ]
        )
    }

    /// The cache, and the rules for freshness.
    struct CacheLocation: ParsableArguments {
        @Option(
            name: [.customShort("d"), .long],
            help: ArgumentHelp("The cache's directory, as given to `holdfast proxy --disk`.", valueName: "dir")
        )
        var directory: String

        @Option(help: "Determine freshness for this kind of cache; a shared one uses s-maxage.")
        var mode: CacheKind = .private

        /// The full path of the directory.
        var url: URL { URL(fileURLWithPath: directory, isDirectory: true).standardizedFileURL }

        var options: CacheOptions { CacheOptions(mode: mode.mode) }

        /// Opens the cache for reading only.
        func read() async throws -> ReadCache {
            do throws(StoreError) {
                let reader = try await DiskStoreReader.open(directory: url.path)
                return ReadCache(cache: HTTPCache(store: reader, options: options), reader: reader)
            } catch {
                throw CommandFailure(error)
            }
        }
    }

    /// A cache that is read while another process may have it open.
    struct ReadCache: Sendable {
        let cache: HTTPCache
        let reader: DiskStoreReader

        /// Reports what a list could not show.
        func tellSealed(on console: Console) {
            let count = reader.sealedEntriesPassedOver
            guard count > 0 else { return }
            console.error("holdfast: \(count) encrypted entries were skipped, because their key is missing\n")
        }
    }

    extension CommandFailure {
        /// A store's error, with what the system said.
        init(_ error: StoreError) {
            self.init(error.message + (error.cause.map { " (\(SystemText.of($0)))" } ?? ""))
        }
    }

    /// The system's own text for an error.
    enum SystemText {
        static func of(_ error: any Error) -> String {
            if let error = error as? FileSystemError {
                return "\(error.operation) \(error.path): \(String(cString: strerror(error.errno)))"
            }
            let error = error as NSError
            let system = error.domain == NSPOSIXErrorDomain ? error : error.userInfo[NSUnderlyingErrorKey] as? NSError
            guard let system, system.domain == NSPOSIXErrorDomain else { return "\(error)" }
            return String(cString: strerror(Int32(truncatingIfNeeded: system.code)))
        }
    }

    /// Selects stored responses that match all given options.
    struct EntryFilter: ParsableArguments {
        @Option(help: "Responses for this URL; may be repeated.")
        var url: [String] = []

        @Option(
            help: "Responses for this URL and everything below it; with * at the end, for all URLs that begin with it."
        )
        var prefix: String?

        @Option(help: "Responses from this host; *.example.com also matches its subdomains.")
        var host: String?

        @Flag(help: "Fresh responses.")
        var fresh = false

        @Flag(help: "Stale responses, and those that must be confirmed before use.")
        var stale = false

        @Option(help: "Responses with this tag; if repeated, with all of the tags.")
        var tag: [String] = []

        @Option(help: ArgumentHelp("Responses that are older than this: 90s, 12h, 7d.", valueName: "age"))
        var olderThan: TimeSpan?

        @Option(help: ArgumentHelp("Responses with a body larger than this: 500kB, 10MB.", valueName: "size"))
        var largerThan: ByteCount?

        func validate() throws {
            if fresh, stale { throw ValidationError("--fresh and --stale cannot be used together.") }
            _ = try predicate()
        }

        /// Whether no option is given.
        var isEmpty: Bool {
            url.isEmpty && prefix == nil && host == nil && !fresh && !stale && tag.isEmpty && olderThan == nil
                && largerThan == nil
        }

        /// A URL as people write it.
        static func target(_ text: String) throws -> TargetURI {
            do throws(EntryMatch.UnreadableURL) { return try EntryMatch.target(text) } catch { throw unreadable(error) }
        }

        private static func unreadable(_ error: EntryMatch.UnreadableURL) -> ValidationError {
            ValidationError("Not an absolute http or https URL: \(error.text.prefix(200))")
        }

        /// The match in the form that is sent to a process with the open cache.
        var match: EntryMatch {
            var match = EntryMatch()
            match.urls = url.isEmpty ? nil : url
            if let prefix {
                if prefix.hasSuffix("*") { match.beginning = String(prefix.dropLast()) } else { match.below = prefix }
            }
            match.host = host
            match.isFresh = fresh ? true : stale ? false : nil
            match.tags = tag.isEmpty ? nil : tag
            match.olderThan = olderThan?.duration.components.seconds
            match.largerThan = largerThan?.bytes
            return match
        }

        /// The filter as a predicate for one response.
        func predicate() throws -> @Sendable (CacheEntryInfo) -> Bool {
            do throws(EntryMatch.UnreadableURL) { return try match.predicate() } catch { throw Self.unreadable(error) }
        }
    }
#endif
