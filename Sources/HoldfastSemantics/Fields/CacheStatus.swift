// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The Cache-Status field: how each cache on the path handled a request (RFC 9211).
///
/// Parsing is lenient for each member: members that are neither String nor Token are skipped, and so are parameters that are
/// unknown or of the wrong type. A field that is not a List has no status.
public struct CacheStatus: Sendable, Hashable, CustomStringConvertible {
    /// One entry for each cache, the one closest to the origin first (RFC 9211 §2).
    public var entries: [CacheStatusEntry]

    /// Creates a field from entries, the cache closest to the origin first.
    public init(_ entries: [CacheStatusEntry] = []) { self.entries = entries }

    /// Parses a field value; linear time.
    ///
    /// - Parameter value: all lines of the field joined by ", ". Nil if they are not a List (RFC 9651 §4.2).
    public init?(parsing value: String) {
        guard let list = try? StructuredList(parsing: value) else { return nil }
        entries = list.members.compactMap { $0.item.flatMap { CacheStatusEntry($0) } }
    }

    /// Reads the field of a response.
    ///
    /// - Parameter fields: the response's fields. Nil if Cache-Status is missing or not a List.
    public init?(_ fields: HeaderFields) {
        guard let value = fields[.cacheStatus] else { return nil }
        self.init(parsing: value)
    }

    /// The field value; empty without entries, in which case the field must not be sent.
    public var description: String {
        CacheStatus.text(StructuredList(entries.map { .item($0.structured) }))
    }

    /// The value with one more entry at the end: this cache is the one closest to the user.
    ///
    /// Existing entries stay as they are, including unknown parameters (RFC 9211 §2). Linear time.
    ///
    /// - Parameters:
    ///   - entry: what this cache did.
    ///   - existing: the field value from upstream, or nil; dropped if it is not a List.
    public static func appending(_ entry: CacheStatusEntry, to existing: String?) -> String {
        var list = existing.flatMap { try? StructuredList(parsing: $0) } ?? StructuredList()
        list.members.append(.item(entry.structured))
        return text(list)
    }

    private static func text(_ list: StructuredList) -> String {
        // What was parsed can be written, and entries clean their values, so nothing throws here.
        ((try? list.serialized()) ?? nil) ?? ""
    }
}

/// What one cache says about its handling of one request (RFC 9211 §2).
/// A hit and a reason for forwarding exclude each other, and `fwd-status`, `stored` and `collapsed` only apply to a forwarded
/// request. Reading and writing follow these rules, and a reason for forwarding overrides a claimed hit. Texts are written as
/// printable ASCII, with "?" for every other byte.
public struct CacheStatusEntry: Sendable, Hashable {
    /// Why a request was forwarded toward the origin (RFC 9211 §2.2).
    public struct ForwardReason: Sendable, Hashable, CustomStringConvertible {
        /// The token on the wire, suitable for metric labels.
        public let token: String

        /// The token.
        public var description: String { token }

        /// The cache was told not to handle the request.
        public static let bypass = ForwardReason(token: "bypass")
        /// The method's semantics require it.
        public static let method = ForwardReason(token: "method")
        /// Nothing is stored for the URI.
        public static let uriMiss = ForwardReason(token: "uri-miss")
        /// Something is stored for the URI, but Vary selects none of it.
        public static let varyMiss = ForwardReason(token: "vary-miss")
        /// Nothing stored matches, for one of the two reasons above.
        public static let miss = ForwardReason(token: "miss")
        /// A fresh response is stored, but the request does not accept it.
        public static let request = ForwardReason(token: "request")
        /// The stored response is stale.
        public static let stale = ForwardReason(token: "stale")
        /// Only parts of what was requested are stored.
        public static let partial = ForwardReason(token: "partial")

        static let known: [ForwardReason] = [
            .bypass, .method, .uriMiss, .varyMiss, .miss, .request, .stale, .partial,
        ]
    }

    /// The cache's name; written as a Token if it is one, otherwise as a String.
    public var cache: String

    /// `hit`: whether the cache answered without forwarding the request (RFC 9211 §2.1).
    public var isHit: Bool

    /// `fwd`: why the request was forwarded; nil if it was not, or if no reason is given (RFC 9211 §2.2).
    public var forward: ForwardReason?

    /// `fwd-status`: the status of the response from the next hop, if it differs or is useful (RFC 9211 §2.3).
    public var forwardStatus: StatusCode?

    /// `ttl`: the remaining freshness in seconds, negative for a stale response (RFC 9211 §2.4).
    public var timeToLive: Int64?

    /// `stored`: whether the cache stored the response to the forwarded request (RFC 9211 §2.5).
    public var isStored: Bool

    /// `collapsed`: whether the request waited for the response to another one (RFC 9211 §2.6).
    public var isCollapsed: Bool

    /// `key`: a rendering of the cache key (RFC 9211 §2.7).
    public var key: String?

    /// `detail`: additional information for people (RFC 9211 §2.8).
    public var detail: String?

    /// Creates an entry; by default it has only a name.
    public init(
        cache: String,
        isHit: Bool = false,
        forward: ForwardReason? = nil,
        forwardStatus: StatusCode? = nil,
        timeToLive: Int64? = nil,
        isStored: Bool = false,
        isCollapsed: Bool = false,
        key: String? = nil,
        detail: String? = nil
    ) {
        self.cache = cache
        self.isHit = isHit
        self.forward = forward
        self.forwardStatus = forwardStatus
        self.timeToLive = timeToLive
        self.isStored = isStored
        self.isCollapsed = isCollapsed
        self.key = key
        self.detail = detail
    }

    /// Reads a member of the field; nil if its value is neither String nor Token.
    init?(_ item: StructuredItem) {
        guard let name = item.value.word else { return nil }
        self.init(cache: name)
        let parameters = item.parameters
        if case .token(let token) = parameters["fwd"] {
            forward = ForwardReason.known.first { $0.token == token }
        }
        if forward != nil {
            if case .integer(let number) = parameters["fwd-status"], let status = Int(exactly: number) {
                forwardStatus = StatusCode(status)
            }
            isStored = parameters["stored"] == .boolean(true)
            isCollapsed = parameters["collapsed"] == .boolean(true)
        } else {
            isHit = parameters["hit"] == .boolean(true)
        }
        if case .integer(let seconds) = parameters["ttl"] { timeToLive = seconds }
        if case .string(let text) = parameters["key"] { key = text }
        detail = parameters["detail"]?.word
    }

    /// The entry as a member of the field; it can always be written.
    var structured: StructuredItem {
        var item = StructuredItem(CacheStatusEntry.word(cache))
        if let forward {
            item.parameters["fwd"] = .token(forward.token)
            item.parameters["fwd-status"] = forwardStatus.map { CacheStatusEntry.integer(Int64($0.rawValue)) }
        } else if isHit {
            item.parameters["hit"] = .boolean(true)
        }
        item.parameters["ttl"] = timeToLive.map { CacheStatusEntry.integer($0) }
        if forward != nil {
            if isStored { item.parameters["stored"] = .boolean(true) }
            if isCollapsed { item.parameters["collapsed"] = .boolean(true) }
        }
        item.parameters["key"] = key.map { .string(CacheStatusEntry.printable($0)) }
        item.parameters["detail"] = detail.map { CacheStatusEntry.word($0) }
        return item
    }

    private static func word(_ text: String) -> StructuredBareItem {
        text.isStructuredToken ? .token(text) : .string(printable(text))
    }

    private static func printable(_ text: String) -> String {
        String(decoding: text.utf8.lazy.map { $0.isPrintableASCII ? $0 : UInt8(ascii: "?") }, as: UTF8.self)
    }

    private static func integer(_ number: Int64) -> StructuredBareItem {
        let limit = StructuredBareItem.maximumInteger
        return .integer(min(max(number, -limit), limit))
    }
}

extension StructuredBareItem {
    /// The text of a String or a Token.
    var word: String? {
        switch self {
        case .string(let text), .token(let text): text
        default: nil
        }
    }
}

/// How a cache handled one request, for Cache-Status (RFC 9211 §2).
public struct CacheHandling: Sendable, Hashable {
    /// How the request was answered; closed, since RFC 9211 has no others.
    public enum Outcome: Sendable, Hashable {
        /// From the store, without waiting for the origin.
        case hit
        /// From the store, after a 304 from the origin.
        case revalidated
        /// With the response to an equal request.
        case collapsed
        /// By the origin.
        case forwarded
        /// By the origin, without using the store.
        case bypassed
    }

    /// How the request was answered.
    public var outcome: Outcome

    /// Why.
    public var reason: CacheReason

    /// The status from the next hop, if a response with another one was returned; nil if none arrived or it is the same.
    public var originStatus: StatusCode?

    /// The seconds for which the response stays fresh, negative once it is stale; nil if unknown.
    public var freshnessLeft: Int64?

    /// Whether the origin's response was stored.
    public var isStored: Bool

    /// Creates a description; omitted values are unknown.
    public init(
        _ outcome: Outcome,
        reason: CacheReason,
        originStatus: StatusCode? = nil,
        freshnessLeft: Int64? = nil,
        isStored: Bool = false
    ) {
        self.outcome = outcome
        self.reason = reason
        self.originStatus = originStatus
        self.freshnessLeft = freshnessLeft
        self.isStored = isStored
    }

    /// The entry of the cache with this name.
    ///
    /// A response that is served because the origin failed was forwarded first, so it is not a hit (RFC 9211 §2.1). One that is
    /// served while a revalidation runs in the background is a hit.
    ///
    /// - Parameters:
    ///   - cache: the cache's name.
    ///   - key: a rendering of the key; nil, the default, shows none.
    public func entry(of cache: String, key: String? = nil) -> CacheStatusEntry {
        var entry = CacheStatusEntry(cache: cache, timeToLive: freshnessLeft, key: key)
        entry.isHit = outcome == .hit && !standsIn
        if !entry.isHit {
            entry.forward = forwardReason
            entry.forwardStatus = outcome == .revalidated ? .notModified : originStatus
            entry.isStored = isStored
            entry.isCollapsed = outcome == .collapsed
        }
        if !CacheHandling.told.contains(reason) { entry.detail = reason.words }
        return entry
    }

    private var standsIn: Bool {
        reason == .staleIfError || reason == .disconnected || reason == .patience
    }

    private var forwardReason: CacheStatusEntry.ForwardReason {
        switch reason {
        case .method: .method
        // Downstream need not know that somebody else asked for the URI.
        case .notStored, .otherPrincipal: .uriMiss
        case .noVariant: .varyMiss
        case .stale, .softPurged, .storeLostPower: .stale
        case .partial: .partial
        case .mustValidate: (freshnessLeft ?? 1) > 0 ? .request : .stale
        case _ where standsIn: (freshnessLeft ?? 0) > 0 ? .request : .stale
        default: outcome == .bypassed ? .bypass : .miss
        }
    }

    /// Reasons that the other parameters already express.
    private static let told: Set<CacheReason> = [
        .fresh, .method, .notStored, .otherPrincipal, .noVariant, .stale, .partial,
    ]
}

extension CacheReason {
    /// How people are told: the code, if that says enough.
    fileprivate var words: String {
        self == .storeLostPower ? "the store lost power" : code
    }
}
