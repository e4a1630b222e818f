// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    internal import ArgumentParser
    internal import Foundation
    internal import Holdfast
    internal import HoldfastCommand
    internal import HoldfastSemantics
    internal import HoldfastStorage

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

    /// Which cache, and by which rules its freshness is judged.
    struct CacheLocation: ParsableArguments {
        enum Mode: String, ExpressibleByArgument, CaseIterable {
            case `private`
            case shared
        }

        @Option(
            name: [.customShort("d"), .long],
            help: ArgumentHelp("The cache's directory, as given to `holdfast proxy --disk`.", valueName: "dir")
        )
        var directory: String

        @Option(help: "Judge freshness as a cache of this kind does: by s-maxage in a shared one.")
        var mode: Mode = .private

        /// The directory in full.
        var url: URL { URL(fileURLWithPath: directory, isDirectory: true).standardizedFileURL }

        var options: CacheOptions { CacheOptions(mode: mode == .shared ? .shared : .private) }

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

    /// A cache that is read beside the process that may have it open.
    struct ReadCache: Sendable {
        let cache: HTTPCache
        let reader: DiskStoreReader

        /// Says what a list could not show.
        func tellSealed(on console: Console) {
            let count = reader.sealedEntriesPassedOver
            guard count > 0 else { return }
            console.error("holdfast: \(count) encrypted entries were passed over; their key is not at hand\n")
        }
    }

    extension CommandFailure {
        /// What a store could not do, with what the system said.
        init(_ error: StoreError) {
            self.init(error.message + (error.cause.map { " (\(SystemText.of($0)))" } ?? ""))
        }
    }

    /// What the system says of an error, in its own words.
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

    /// Which stored responses: those that fit everything that is asked for.
    struct EntryFilter: ParsableArguments {
        @Option(help: "Responses for this URL; may be given several times.")
        var url: [String] = []

        @Option(help: "Responses for this URL and what lies beneath it; with * at its end, for all that begins so.")
        var prefix: String?

        @Option(help: "Responses from this host; *.example.com takes those below it as well.")
        var host: String?

        @Flag(help: "Fresh responses.")
        var fresh = false

        @Flag(help: "Stale responses, and those that must be confirmed before use.")
        var stale = false

        @Option(help: "Responses with this tag; given several times, with all of them.")
        var tag: [String] = []

        @Option(help: ArgumentHelp("Responses of a greater age, such as 90s, 12h, 7d.", valueName: "age"))
        var olderThan: TimeSpan?

        @Option(help: ArgumentHelp("Responses with a longer body, such as 500kB, 10MB.", valueName: "size"))
        var largerThan: ByteCount?

        func validate() throws {
            if fresh, stale { throw ValidationError("--fresh and --stale exclude each other.") }
            _ = try targets
            _ = try prefixTarget
        }

        /// Whether nothing is asked for.
        var isEmpty: Bool {
            url.isEmpty && prefix == nil && host == nil && !fresh && !stale && tag.isEmpty && olderThan == nil
                && largerThan == nil
        }

        private var targets: Set<TargetURI> {
            get throws { Set(try url.map(Self.target)) }
        }

        private var prefixTarget: TargetURI? {
            get throws { try prefix.map { try Self.target($0.hasSuffix("*") ? String($0.dropLast()) : $0) } }
        }

        /// A URL as people write it.
        static func target(_ text: String) throws -> TargetURI {
            do throws(TargetURI.Rejection) {
                return try TargetURI(tolerating: text)
            } catch {
                throw ValidationError("Not an absolute http or https URL: \(text.prefix(200))")
            }
        }

        /// The filter as a question about one response.
        func predicate() throws -> @Sendable (CacheEntryInfo) -> Bool {
            let (targets, prefix, tags) = (try targets, try prefixTarget, Set(tag))
            let takesText = self.prefix?.hasSuffix("*") == true
            let (fresh, stale) = (fresh, stale)
            let host = host?.lowercased()
            let age = olderThan.map { $0.duration.components.seconds }
            let size = largerThan?.bytes
            return { info in
                if !targets.isEmpty, !targets.contains(info.target) { return false }
                if let prefix {
                    let text = info.target.canonical
                    guard takesText ? text.hasPrefix(prefix.canonical) : prefix.isPrefix(of: text) else { return false }
                }
                if let host, !Self.isHost(info.target.host, wanted: host) { return false }
                if fresh, !info.isFresh { return false }
                if stale, info.isFresh { return false }
                if !tags.isSubset(of: info.tags) { return false }
                if let age, info.age <= age { return false }
                if let size, info.bodyLength <= size { return false }
                return true
            }
        }

        private static func isHost(_ host: String, wanted: String) -> Bool {
            guard wanted.hasPrefix("*.") else { return host == wanted }
            return host == wanted.dropFirst(2) || host.hasSuffix(wanted.dropFirst(1))
        }
    }
#endif
