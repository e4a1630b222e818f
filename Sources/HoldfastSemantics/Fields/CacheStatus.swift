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

/// What one cache says about its handling of one request (RFC 9211 §2).
///
/// A hit and a reason for forwarding exclude each other, and `fwd-status`, `stored` and `collapsed` mean something for a
/// forwarded request only: reading and writing keep to that, and a reason for forwarding beats a claimed hit. Texts are
/// written as printable ASCII, "?" standing in for every byte outside it.
public struct CacheStatusEntry: Sendable, Hashable {
    /// Why a request went on towards the origin (RFC 9211 §2.2).
    public struct ForwardReason: Sendable, Hashable, CustomStringConvertible {
        /// The token on the wire, fit for metric labels.
        public let token: String

        /// The token.
        public var description: String { token }

        /// The cache was told not to handle the request.
        public static let bypass = ForwardReason(token: "bypass")
        /// The method's semantics ask for it.
        public static let method = ForwardReason(token: "method")
        /// Nothing is stored for the URI.
        public static let uriMiss = ForwardReason(token: "uri-miss")
        /// Something is stored for the URI, but Vary selects none of it.
        public static let varyMiss = ForwardReason(token: "vary-miss")
        /// Nothing stored fits, for one of the two reasons above.
        public static let miss = ForwardReason(token: "miss")
        /// A fresh response is stored, but the request does not accept it.
        public static let request = ForwardReason(token: "request")
        /// The stored response is stale.
        public static let stale = ForwardReason(token: "stale")
        /// Only parts of what was asked for are stored.
        public static let partial = ForwardReason(token: "partial")

        static let known: [ForwardReason] = [
            .bypass, .method, .uriMiss, .varyMiss, .miss, .request, .stale, .partial,
        ]
    }

    /// The cache's name; written as a Token where it is one, else as a String.
    public var cache: String

    /// `hit`: whether the cache answered without going on towards the origin (RFC 9211 §2.1).
    public var isHit: Bool

    /// `fwd`: why the request went on; nil when it did not or nothing is said (RFC 9211 §2.2).
    public var forward: ForwardReason?

    /// `fwd-status`: the status of the response from the next hop, where it differs or helps (RFC 9211 §2.3).
    public var forwardStatus: StatusCode?

    /// `ttl`: the remaining freshness in seconds, negative for a stale response (RFC 9211 §2.4).
    public var timeToLive: Int64?

    /// `stored`: whether the cache stored the response it forwarded the request for (RFC 9211 §2.5).
    public var isStored: Bool

    /// `collapsed`: whether the request waited for the response to another one (RFC 9211 §2.6).
    public var isCollapsed: Bool

    /// `key`: a rendering of the cache key (RFC 9211 §2.7).
    public var key: String?

    /// `detail`: what the cache likes to add, for people (RFC 9211 §2.8).
    public var detail: String?

    /// Creates an entry; everything but the name has nothing to say by default.
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

    /// Reads a member of the field; nil when its value is neither String nor Token.
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

    /// The entry as a member of the field; always writable.
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

/// What a cache did with one request, as Cache-Status tells it (RFC 9211 §2).
public struct CacheHandling: Sendable, Hashable {
    /// How the request was answered; closed, since RFC 9211 knows no further way.
    public enum Outcome: Sendable, Hashable {
        /// From the store, without waiting for the origin.
        case hit
        /// From the store, after the origin said 304.
        case revalidated
        /// By the response to an equal request.
        case collapsed
        /// By the origin.
        case forwarded
        /// By the origin, the store having been passed by.
        case bypassed
    }

    /// How the request was answered.
    public var outcome: Outcome

    /// Why.
    public var reason: CacheReason

    /// The status that came from the next hop, where another one was handed up; nil where none came or it is the same.
    public var originStatus: StatusCode?

    /// The seconds that the response stays fresh, negative once it is stale; nil where that is not known.
    public var freshnessLeft: Int64?

    /// Whether the response of the origin was stored.
    public var isStored: Bool

    /// Creates a description; what is left out is not known.
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
    /// What stood in for a failure of the origin was forwarded first, so it is no hit (RFC 9211 §2.1); what is served while
    /// a revalidation runs in the background is one.
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
        // That somebody else asked for the URI is nobody's business downstream.
        case .notStored, .otherPrincipal: .uriMiss
        case .noVariant: .varyMiss
        case .stale, .softPurged, .storeLostPower: .stale
        case .partial: .partial
        case .mustValidate: (freshnessLeft ?? 1) > 0 ? .request : .stale
        case _ where standsIn: (freshnessLeft ?? 0) > 0 ? .request : .stale
        default: outcome == .bypassed ? .bypass : .miss
        }
    }

    /// Reasons that the parameters tell without a word more.
    private static let told: Set<CacheReason> = [
        .fresh, .method, .notStored, .otherPrincipal, .noVariant, .stale, .partial,
    ]
}

extension CacheReason {
    /// What people are told of it: the code, where that says enough.
    fileprivate var words: String {
        self == .storeLostPower ? "the store lost power" : code
    }
}
