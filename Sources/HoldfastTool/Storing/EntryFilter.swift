// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    internal import ArgumentParser
    internal import Holdfast
    internal import HoldfastSemantics

    /// Which stored responses: those that fit everything that is asked for.
    struct EntryFilter: ParsableArguments {
        @Option(help: "Responses for this URL; may be given several times.")
        var url: [String] = []

        @Option(help: "Responses for this URL and what lies beneath it.")
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
            get throws { try prefix.map(Self.target) }
        }

        /// A URL as people write it.
        static func target(_ text: String) throws -> TargetURI {
            do throws(TargetURI.Rejection) {
                return try TargetURI(mapping: text)
            } catch {
                throw ValidationError("Not an absolute http or https URL: \(text.prefix(200))")
            }
        }

        /// The filter as a question about one response.
        func predicate() throws -> @Sendable (CacheEntryInfo) -> Bool {
            let (targets, prefix, tags) = (try targets, try prefixTarget, Set(tag))
            let (fresh, stale) = (fresh, stale)
            let host = host?.lowercased()
            let age = olderThan.map { $0.duration.components.seconds }
            let size = largerThan?.bytes
            return { info in
                if !targets.isEmpty, !targets.contains(info.target) { return false }
                if let prefix, !prefix.isPrefix(of: info.target.canonical) { return false }
                if let host, !Self.isHost(info.target.host, host) { return false }
                if fresh, !info.isFresh { return false }
                if stale, info.isFresh { return false }
                if !tags.isSubset(of: info.tags) { return false }
                if let age, info.age <= age { return false }
                if let size, info.bodyLength <= size { return false }
                return true
            }
        }

        private static func isHost(_ host: String, _ wanted: String) -> Bool {
            guard wanted.hasPrefix("*.") else { return host == wanted }
            return host == wanted.dropFirst(2) || host.hasSuffix(wanted.dropFirst(1))
        }
    }
#endif
