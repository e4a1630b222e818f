// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The Cache-Status field: how each cache on the way handled a request (RFC 9211).
///
/// Reading is lenient member by member: what is no String or Token is left out, and so are parameters that are unknown
/// or of the wrong type. A field that is no List at all has no status to tell.
public struct CacheStatus: Sendable, Hashable, CustomStringConvertible {
    /// One entry a cache, the one closest to the origin first (RFC 9211 §2).
    public var entries: [CacheStatusEntry]

    /// Creates a field from entries, the cache closest to the origin first.
    public init(_ entries: [CacheStatusEntry] = []) {
        self.entries = entries
    }

    /// Reads a field value; linear time.
    ///
    /// - Parameter value: all lines of the field joined by ", "; nil when they are no List (RFC 9651 §4.2).
    public init?(parsing value: String) {
        guard let list = try? StructuredList(parsing: value) else { return nil }
        entries = list.members.compactMap { $0.item.flatMap { CacheStatusEntry($0) } }
    }

    /// Reads the field of a response.
    ///
    /// - Parameter fields: the response's fields; nil when Cache-Status is missing or no List.
    public init?(_ fields: HeaderFields) {
        guard let value = fields[.cacheStatus] else { return nil }
        self.init(parsing: value)
    }

    /// The field value; empty without entries, and then the field must not be sent.
    public var description: String {
        CacheStatus.text(StructuredList(entries.map { .item($0.structured) }))
    }

    /// The value with one more entry behind what is there: the cache that speaks is the one closest to the user.
    ///
    /// Existing entries stay as they are, unknown parameters included (RFC 9211 §2). Linear time.
    ///
    /// - Parameters:
    ///   - entry: what this cache did.
    ///   - existing: the field value from upstream; nil where there is none, dropped where it is no List.
    public static func appending(_ entry: CacheStatusEntry, to existing: String?) -> String {
        var list = existing.flatMap { try? StructuredList(parsing: $0) } ?? StructuredList()
        list.members.append(.item(entry.structured))
        return text(list)
    }

    private static func text(_ list: StructuredList) -> String {
        // What was parsed can be written, and entries clean what they are given, so nothing throws here.
        ((try? list.serialized()) ?? nil) ?? ""
    }
}
