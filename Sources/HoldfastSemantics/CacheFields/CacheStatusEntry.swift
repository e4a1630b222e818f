// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

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
}

extension CacheStatusEntry {
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
