// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// What the cache keys of one origin, or of the paths beneath one of its paths, leave out or take in.
///
/// Set by whoever knows what the origin makes of queries and content. Rules change keys alone, never what is sent. Where
/// several apply to a URI, the one with the longest prefix holds, and no other.
public struct KeyRule: Sendable, Hashable {
    /// The canonical URI whose origin and path a target begins with.
    public let prefix: TargetURI

    /// What is left out of the query; nothing by default.
    public var query: QueryOptions

    /// How content is read for the keys of QUERY, and of POST where it is cached; as it is by default.
    public var content: ContentNormalizer

    /// Whether POST here only asks, so that its responses are stored under its content, and answers to POST invalidate
    /// nothing; false by default (RFC 9110 §9.3.3 stores them otherwise for a later GET at most).
    public var cachesPost: Bool

    /// Creates a rule.
    ///
    /// - Parameters:
    ///   - prefix: an absolute http or https URI without a query. Whole path segments count: `https://h/api` is for
    ///     `/api` and `/api/x`, not for `/apis`; a path that ends in "/" is for what lies beneath it.
    ///   - query: nothing left out by default.
    ///   - content: the bytes as they are by default.
    ///   - cachesPost: false by default.
    /// - Throws: ``TargetURI/Rejection`` where the prefix is no such URI or has a query.
    public init(
        _ prefix: String,
        query: QueryOptions = QueryOptions(),
        content: ContentNormalizer = .raw,
        cachesPost: Bool = false
    ) throws(TargetURI.Rejection) {
        self.prefix = try TargetURI(prefix)
        guard self.prefix.query == nil else {
            throw TargetURI.Rejection(.character, "A key rule has no query in its prefix; leave it out of \(prefix).")
        }
        self.query = query
        self.content = content
        self.cachesPost = cachesPost
    }

    /// Whether the rule is for a target.
    public func applies(to target: TargetURI) -> Bool {
        guard prefix.isSameOrigin(as: target) else { return false }
        let own = prefix.path
        guard target.path.utf8.starts(with: own.utf8) else { return false }
        if own.utf8.last == UInt8(ascii: "/") { return true }
        let rest = target.path.utf8.dropFirst(own.utf8.count)
        return rest.isEmpty || rest.first == UInt8(ascii: "/")
    }
}

extension CacheOptions {
    /// The rule for a target; nil where none applies.
    package func keyRule(for target: TargetURI) -> KeyRule? {
        guard !keyRules.isEmpty else { return nil }
        return keyRules.filter { $0.applies(to: target) }
            .max { $0.prefix.path.utf8.count < $1.prefix.path.utf8.count }
    }

    /// The URI that stands in the keys of a target.
    package func keyTarget(of target: TargetURI) -> TargetURI {
        (keyRule(for: target)?.query ?? query).applied(to: target)
    }
}
