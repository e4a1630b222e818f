// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Settings of a cache for some requests or responses, which are selected by patterns.
///
/// A pattern that is left out matches everything; a list matches if one of its members does. A setting that is left out is that
/// of the ``CacheOptions``. ``CacheRules`` says which rule applies.
public struct CacheRule: Sendable, Hashable {
    /// The hosts that the rule is for; empty: all.
    ///
    /// `shop.example` is that host, `*.shop.example` every host below it but not that host itself, `*` any. Scheme and port
    /// count if they are given: `https://shop.example` is that origin, `shop.example:8080` that port. Case is ignored.
    public let hosts: [String]

    /// The paths that the rule is for; empty: all.
    ///
    /// The whole path has to match, in its canonical form, including its case. `*` matches any characters, including slashes
    /// and none at all: `/api/*` matches `/api/` and everything below, but not `/api`.
    public let paths: [String]

    /// The media types of responses that the rule is for; empty: all.
    ///
    /// Parameters and case are ignored, and `*` matches any characters: `image/*`, `application/*json`. A response without a
    /// readable Content-Type matches none. A key cannot depend on the response, so a rule with content types has no
    /// ``keyFields``, ``query``, ``ignoredCookies``, ``content`` and ``cachesPost``.
    public let contentTypes: [String]

    /// How long a response counts as fresh if its server does not say; as ``CacheOptions/defaultLifetime``.
    public let lifetime: Duration?

    /// How long a response counts as fresh, whatever its server says, **including `no-store` and `no-cache`**; as
    /// ``CacheOptions/fixedLifetime``.
    public let fixedLifetime: Duration?

    /// Whether nothing is stored, and nothing that is stored is used; false by default.
    ///
    /// Stored responses stay in the store, and are used again once the rule is gone. Unsafe requests and `remove` still remove
    /// them.
    public let neverStore: Bool

    /// How long after it becomes stale a response may replace a 500, 502, 503 or 504; as ``CacheOptions/staleIfError``.
    public let staleIfError: Duration?

    /// How long after it becomes stale a response may be used while it is revalidated; as
    /// ``CacheOptions/staleWhileRevalidate``.
    public let staleWhileRevalidate: Duration?

    /// The request fields whose values are part of the key, so that requests with different values never share a response; none
    /// by default.
    ///
    /// An absent field counts as a value of its own. Values are compared byte for byte and kept as a keyed digest. An unsafe
    /// request, and `remove`, affect what is stored under all values.
    public let keyFields: [FieldName]

    /// What the keys leave out of queries; as ``CacheOptions/query``.
    public let query: QueryOptions?

    /// Cookies that do not affect whose response it is, and are never stored, in addition to the cache's own
    /// ``CacheOptions/ignoredCookies``; none by default. **Never name a cookie that says who the user is.**
    public let ignoredCookies: [String]

    /// How content is read for the keys of QUERY, and of POST if it is cached; by default unchanged.
    public let content: ContentNormalizer

    /// Whether POST only reads data, so that its responses are stored under its content and it does not invalidate anything;
    /// false by default (RFC 9110 §9.3.3 stores them otherwise for a later GET at most).
    public let cachesPost: Bool

    private let hostPatterns: [HostPattern]
    private let pathPatterns: [WildcardPattern]
    private let typePatterns: [WildcardPattern]

    /// The longest pattern, in bytes.
    package static let longestPattern = 1_024

    /// Creates a rule; each property documents its parameter.
    ///
    /// - Throws: ``CacheRulesError`` for a pattern that cannot match anything, and for settings that contradict each other.
    ///   Negative durations count as zero.
    public init(
        hosts: [String] = [],
        paths: [String] = [],
        contentTypes: [String] = [],
        lifetime: Duration? = nil,
        fixedLifetime: Duration? = nil,
        neverStore: Bool = false,
        staleIfError: Duration? = nil,
        staleWhileRevalidate: Duration? = nil,
        keyFields: [FieldName] = [],
        query: QueryOptions? = nil,
        ignoredCookies: [String] = [],
        content: ContentNormalizer = .raw,
        cachesPost: Bool = false
    ) throws(CacheRulesError) {
        self.hosts = hosts
        self.paths = paths
        self.contentTypes = contentTypes
        self.lifetime = lifetime.map { max($0, .zero) }
        self.fixedLifetime = fixedLifetime.map { max($0, .zero) }
        self.neverStore = neverStore
        self.staleIfError = staleIfError.map { max($0, .zero) }
        self.staleWhileRevalidate = staleWhileRevalidate.map { max($0, .zero) }
        self.keyFields = keyFields
        self.query = query
        self.ignoredCookies = ignoredCookies
        self.content = content
        self.cachesPost = cachesPost
        hostPatterns = try CacheRule.patterns(
            hosts,
            "is not a host; write a host such as shop.example or *.shop.example, with https:// before it or :8080 after it "
                + "if scheme or port matter"
        ) { HostPattern($0) }
        pathPatterns = try CacheRule.patterns(
            paths,
            "is not a path; begin it with / or *, and leave out the query and the segments . and .., as in /api/*"
        ) { PathPattern.canonical($0) }
        typePatterns = try CacheRule.patterns(
            contentTypes,
            "is not a content type; write type and subtype without parameters, as in image/* or application/json"
        ) { ContentTypePattern.canonical($0) }
        if let problem { throw CacheRulesError(problem) }
    }

    private static func patterns<Pattern>(
        _ texts: [String],
        _ complaint: String,
        read: (String) -> Pattern?
    ) throws(CacheRulesError) -> [Pattern] {
        var patterns: [Pattern] = []
        for text in texts {
            guard text.utf8.count <= longestPattern else {
                throw CacheRulesError("A pattern is longer than \(longestPattern) bytes; shorten it.")
            }
            guard let pattern = read(text) else { throw CacheRulesError("\"\(text)\" \(complaint).") }
            patterns.append(pattern)
        }
        return patterns
    }

    /// How the settings contradict each other; nil if they do not.
    private var problem: String? {
        if lifetime != nil, fixedLifetime != nil {
            return
                "A rule may have lifetime or fixedLifetime, not both; lifetime obeys the server, fixedLifetime does not."
        }
        let hasLifetimes = [lifetime, fixedLifetime, staleIfError, staleWhileRevalidate].contains { $0 != nil }
        if neverStore, hasLifetimes {
            return
                "With neverStore nothing is stored, so such a rule must not have lifetime, fixedLifetime, staleIfError or "
                + "staleWhileRevalidate."
        }
        if !contentTypes.isEmpty, hasKeySettings {
            return
                "The key is made before the content type is known, so a rule with contentTypes must not have keyFields, query, "
                + "ignoredCookies, content or cachesPost; put these into a separate rule."
        }
        let unfit = keyFields.first { CacheRule.unfitKeyFields.contains($0) }
        return unfit.map {
            "\($0) cannot be a key field, since the cache itself sets it in requests that it sends; leave it out."
        }
    }

    /// What of the rule makes keys.
    struct KeySettings: Sendable, Hashable {
        var fields: Set<FieldName> = []
        var query: QueryOptions?
        var cookies: [String] = []
        var content = ContentNormalizer.raw
        var cachesPost = false
    }

    /// For which requests, in the spelling of the rule, and how their keys are made.
    struct Keying: Sendable, Hashable {
        let hosts: [String]
        let paths: [String]
        let settings: KeySettings
    }

    var keySettings: KeySettings {
        KeySettings(
            fields: Set(keyFields),
            query: query,
            cookies: ignoredCookies,
            content: content,
            cachesPost: cachesPost
        )
    }

    var keying: Keying { Keying(hosts: hosts, paths: paths, settings: keySettings) }

    var hasKeySettings: Bool {
        !keyFields.isEmpty || query != nil || !ignoredCookies.isEmpty || content != .raw || cachesPost
    }

    /// Whether the rule changes anything.
    var hasSettings: Bool {
        hasKeySettings || neverStore
            || [lifetime, fixedLifetime, staleIfError, staleWhileRevalidate].contains { $0 != nil }
    }

    private static let unfitKeyFields: Set<FieldName> = [
        .range, .ifRange, .ifMatch, .ifNoneMatch, .ifModifiedSince, .ifUnmodifiedSince,
    ]

    /// Whether the rule applies to requests for a route, whatever the content types of their responses.
    func matches(_ route: Route) -> Bool {
        if !hostPatterns.isEmpty, !hostPatterns.contains(where: { $0.matches(route) }) { return false }
        return pathPatterns.isEmpty || pathPatterns.contains { $0.matches(route.path) }
    }

    /// Whether the rule applies to responses with this media type.
    ///
    /// - Parameter contentType: type and subtype in lower case; "" for none.
    func matches(contentType: String) -> Bool {
        typePatterns.isEmpty || !contentType.isEmpty && typePatterns.contains { $0.matches(contentType) }
    }
}

/// What is wrong with a cache's rules, where, and what is allowed.
public struct CacheRulesError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The line in the JSON text, counted from 1; nil for rules made in code.
    public let line: Int?

    /// The column in that line, in Unicode scalars counted from 1; nil for rules made in code.
    public let column: Int?

    /// What is wrong and what to write instead.
    public let message: String

    package init(_ message: String, line: Int? = nil, column: Int? = nil) {
        self.line = line
        self.column = column
        self.message = message
    }

    /// The place, if there is one, and the message.
    public var description: String {
        guard let line, let column else { return message }
        return "line \(line), column \(column): \(message)"
    }
}
