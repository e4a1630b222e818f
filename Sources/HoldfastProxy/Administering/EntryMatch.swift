// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    package import Foundation
    package import Holdfast
    package import HoldfastSemantics

    /// Selects the stored responses that match all given properties.
    ///
    /// `holdfast cache` applies it in a directory that no process has open, and otherwise sends it to the process that
    /// does.
    package struct EntryMatch: Codable, Sendable, Hashable {
        /// Responses for one of these URLs.
        package var urls: [String]?
        /// Responses for this URL and those below it.
        package var below: String?
        /// Responses whose URL begins with this text.
        package var beginning: String?
        /// Responses from this host; `*.example.com` also matches the hosts below it.
        package var host: String?
        /// Fresh responses (`true`), or only those that are not fresh.
        package var isFresh: Bool?
        /// Responses with all of these tags.
        package var tags: [String]?
        /// Responses older than this many seconds.
        package var olderThan: Int64?
        /// Responses with a body of more than this many bytes.
        package var largerThan: Int?

        /// Creates a match for all responses.
        package init() {}

        /// A text that is not a URL.
        package struct UnreadableURL: Error, Sendable {
            package let text: String
        }

        /// Reads a match from JSON.
        ///
        /// - Throws: if it is not a match, or has members that this program does not know, because it would then match
        ///   more than intended.
        package init(json: Data) throws {
            let known = Set(CodingKeys.allCases.map(\.rawValue))
            guard let members = try JSONSerialization.jsonObject(with: json) as? [String: Any],
                known.isSuperset(of: members.keys)
            else { throw ServiceError(.badRequest, "The purge has a member that this version does not know.") }
            self = try JSONDecoder().decode(EntryMatch.self, from: json)
            guard self != EntryMatch() else { throw ServiceError(.badRequest, "The purge selects nothing.") }
        }

        private enum CodingKeys: String, CodingKey, CaseIterable {
            case urls, below, beginning, host, isFresh, tags, olderThan, largerThan
        }

        /// The match as a predicate on a response.
        ///
        /// - Throws: ``UnreadableURL``.
        package func predicate() throws(UnreadableURL) -> @Sendable (CacheEntryInfo) -> Bool {
            var targets: Set<TargetURI>?
            if let urls {
                var read: Set<TargetURI> = []
                for text in urls { read.insert(try EntryMatch.target(text)) }
                targets = read
            }
            let below = try below.map { text throws(UnreadableURL) in try EntryMatch.target(text) }
            let beginning = try beginning.map { text throws(UnreadableURL) in
                _ = try EntryMatch.target(text)
                return TargetPrefix(text)
            }
            let (host, tags) = (host?.lowercased(), Set(tags ?? []))
            let (isFresh, olderThan, largerThan) = (isFresh, olderThan, largerThan)
            return { [targets] info in
                if let targets, !targets.contains(info.target) { return false }
                if let below, !below.isPrefix(of: info.target.canonical) { return false }
                if let beginning, !beginning.matches(info.target.canonical) { return false }
                if let host, !EntryMatch.isHost(info.target.host, wanted: host) { return false }
                if let isFresh, info.isFresh != isFresh { return false }
                if !tags.isSubset(of: info.tags) { return false }
                if let olderThan, info.age <= olderThan { return false }
                if let largerThan, info.bodyLength <= largerThan { return false }
                return true
            }
        }

        /// A URL as people write it.
        ///
        /// - Throws: ``UnreadableURL``.
        package static func target(_ text: String) throws(UnreadableURL) -> TargetURI {
            guard let target = try? TargetURI(tolerating: text) else { throw UnreadableURL(text: text) }
            return target
        }

        private static func isHost(_ host: String, wanted: String) -> Bool {
            guard wanted.hasPrefix("*.") else { return host == wanted }
            return host == wanted.dropFirst(2) || host.hasSuffix(wanted.dropFirst(1))
        }
    }
#endif
