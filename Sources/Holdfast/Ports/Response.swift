// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation
public import HoldfastSemantics
private import Synchronization

#if canImport(FoundationNetworking)
    public import FoundationNetworking
#endif

/// A response: status, header field lines, a body that is bytes or a stream, and where it came from.
public struct Response: Sendable, CustomStringConvertible, CustomReflectable {
    private struct Parts: Sendable {
        var status: StatusCode
        var fields: HeaderFields
        var body: ResponseBody
        var url: URL?
        var source: ResponseSource
        var requestTime: Timestamp?
        var responseTime: Timestamp?
        var contentDecoded: Bool
        var attempts: [AttemptRecord] = []
        var cacheDecision: CacheDecision?
        var presentation = Presentation.unknown
        var hasAgeDeducted = false
        var deadline: CallDeadline?
        var storedOrigin: (any RemovableOrigin)?
    }

    private var parts: CopyOnWrite<Parts>

    /// The status code.
    public var status: StatusCode {
        get { parts.value.status }
        set { parts.value.status = newValue }
    }
    /// The header fields, line by line.
    public var fields: HeaderFields {
        get { parts.value.fields }
        _modify { yield &parts.value.fields }
    }
    /// The body.
    public var body: ResponseBody {
        get { parts.value.body }
        _modify { yield &parts.value.body }
    }
    /// The URL that answered: the request's, or the last one of a redirect chain.
    public var url: URL? {
        get { parts.value.url }
        set { parts.value.url = newValue }
    }
    /// Where the response came from.
    public var source: ResponseSource {
        get { parts.value.source }
        set { parts.value.source = newValue }
    }
    /// When the request was sent, in the attempt that got this response.
    public var requestTime: Timestamp? {
        get { parts.value.requestTime }
        set { parts.value.requestTime = newValue }
    }
    /// When the head arrived, in the attempt that got this response.
    public var responseTime: Timestamp? {
        get { parts.value.responseTime }
        set { parts.value.responseTime = newValue }
    }
    /// Whether the transport has already decoded the content coding that Content-Encoding names.
    public var contentDecoded: Bool {
        get { parts.value.contentDecoded }
        set { parts.value.contentDecoded = newValue }
    }
    /// Every attempt of the exchange that got this response, in order; one entry for a call that succeeded at once.
    public var attempts: [AttemptRecord] {
        get { parts.value.attempts }
        _modify { yield &parts.value.attempts }
    }

    /// What the cache did for this response, and why; nil if no cache was asked. With several caches, the outermost one's
    /// decision.
    public internal(set) var cacheDecision: CacheDecision? {
        get { parts.value.cacheDecision }
        set { parts.value.cacheDecision = newValue }
    }

    /// The request fields that it answers, as far as they are known locally; a cache needs them to decide whose response it is.
    package var presentation: Presentation {
        get { parts.value.presentation }
        set { parts.value.presentation = newValue }
    }
    /// Whether a cache has already subtracted the Age from its Retry-After.
    var hasAgeDeducted: Bool {
        get { parts.value.hasAgeDeducted }
        set { parts.value.hasAgeDeducted = newValue }
    }
    /// When its call ends, by the clock of its pipeline; nil if nothing limits the call.
    var deadline: CallDeadline? {
        get { parts.value.deadline }
        set { parts.value.deadline = newValue }
    }
    /// The stored entry that it came from; nil if there is none.
    var storedOrigin: (any RemovableOrigin)? {
        get { parts.value.storedOrigin }
        set { parts.value.storedOrigin = newValue }
    }

    /// A response; by default from the network, with an empty body.
    public init(
        status: StatusCode,
        fields: HeaderFields = HeaderFields(),
        body: ResponseBody = ResponseBody(),
        url: URL? = nil,
        source: ResponseSource = .network(attempts: 1),
        contentDecoded: Bool = false
    ) {
        parts = CopyOnWrite(
            Parts(
                status: status,
                fields: fields,
                body: body,
                url: url,
                source: source,
                contentDecoded: contentDecoded
            )
        )
    }

    /// A response with text, `text/plain` in UTF-8, made locally (``ResponseSource/synthesized``).
    public static func text(_ text: String, status: StatusCode = .ok) -> Response {
        made(Array(text.utf8), contentType: "text/plain; charset=utf-8", status: status)
    }

    /// A response with JSON, made locally (``ResponseSource/synthesized``).
    ///
    /// - Parameters:
    ///   - value: the value to encode.
    ///   - encoder: encodes the value; a plain `JSONEncoder` by default.
    ///   - status: 200 by default.
    /// - Throws: any error of the encoder.
    public static func json(
        _ value: some Encodable,
        encoder: JSONEncoder = JSONEncoder(),
        status: StatusCode = .ok
    ) throws -> Response {
        made(Array(try encoder.encode(value)), contentType: "application/json", status: status)
    }

    /// A response with bytes, made locally (``ResponseSource/synthesized``).
    ///
    /// - Parameters:
    ///   - data: the content.
    ///   - contentType: its media type; `application/octet-stream` by default.
    ///   - status: 200 by default.
    public static func data(
        _ data: Data,
        contentType: String = "application/octet-stream",
        status: StatusCode = .ok
    ) -> Response {
        made(Array(data), contentType: contentType, status: status)
    }

    private static func made(_ bytes: [UInt8], contentType: String, status: StatusCode) -> Response {
        Response(
            status: status,
            fields: [.contentType: contentType, .contentLength: String(bytes.count)],
            body: ResponseBody(ByteChunk(bytes)),
            source: .synthesized
        )
    }

    /// A fresh hit of a plain request.
    init(
        _ facts: ResponseFacts,
        fields: HeaderFields,
        body: ByteChunk,
        to request: URLRequest,
        url: URL,
        implicit: HeaderFields,
        decision: CacheDecision
    ) {
        parts = CopyOnWrite(
            Parts(
                status: facts.status,
                fields: fields,
                body: ResponseBody(body, call: BodyCall(request: request)),
                url: url,
                source: .fresh,
                requestTime: facts.requestTime,
                responseTime: facts.responseTime,
                contentDecoded: facts.contentDecoded,
                cacheDecision: decision,
                presentation: .presented(PresentedFields(request, implicit: implicit)),
                hasAgeDeducted: true
            )
        )
    }

    /// One line: status, source, and URL without credentials.
    public var description: String { "\(status.rawValue) from \(source)" + (url.map { " \(RedactedURL($0))" } ?? "") }

    /// What `dump` shows: the ``description``. Fields may contain credentials, and content may be long.
    public var customMirror: Mirror { Mirror(self, children: ["text": description]) }

    /// Status and fields, as the rules of HTTP use them.
    public var head: ResponseHead {
        get { ResponseHead(status: status, fields: fields) }
        set {
            status = newValue.status
            fields = newValue.fields
        }
    }

    /// The head for code that subtracts the Age from a Retry-After itself, which must not happen twice.
    var headForRetrying: ResponseHead { hasAgeDeducted ? head.withAgeInRetryAfter : head }

    /// The response as an `HTTPURLResponse`; nil without a ``url``.
    ///
    /// Repeated field lines are joined with a comma, since its fields are a dictionary. Costs about 10 µs on Linux; those of
    /// answers from one stored entry with one Age share one.
    public func makeHTTPURLResponse() -> HTTPURLResponse? {
        guard let url else { return nil }
        guard url.baseURL == nil else { return assembled(url) }
        return FoundationHeads.shared.head(of: head, url: url.absoluteString) { assembled(url) }
    }

    private func assembled(_ url: URL) -> HTTPURLResponse? {
        // One pass: a server may send many fields.
        var joined: [FieldName: String] = [:]
        for line in fields {
            guard joined[line.name] != nil else {
                joined[line.name] = line.value
                continue
            }
            guard let separator = line.name.lineSeparator else { continue }
            joined[line.name]? += separator + line.value
        }
        return HTTPURLResponse(
            url: url,
            statusCode: status.rawValue,
            httpVersion: "HTTP/1.1",
            headerFields: Dictionary(joined.map { ($0.rawName, $1) }, uniquingKeysWith: { first, _ in first })
        )
    }
}

/// Where a response came from; closed.
public enum ResponseSource: Sendable, Hashable {
    /// The transport, after this many attempts.
    case network(attempts: Int)
    /// The store, fresh: nothing was sent.
    case fresh
    /// The store, although stale: nothing was sent, or what was sent failed.
    case stale
    /// The store, after a 304 confirmed that the response is still valid.
    case revalidated
    /// The exchange of another call that made the same request.
    case collapsed
    /// A service in this process.
    case inProcess
    /// Made locally without asking a server, such as the 504 to only-if-cached.
    case synthesized

    /// Whether a body from a store was used.
    public var isFromStore: Bool {
        switch self {
        case .fresh, .stale, .revalidated: true
        case .network, .collapsed, .inProcess, .synthesized: false
        }
    }

    /// Its name in logs, labels and JSON.
    package var word: String {
        switch self {
        case .network: "network"
        case .fresh: "fresh"
        case .stale: "stale"
        case .revalidated: "revalidated"
        case .collapsed: "collapsed"
        case .inProcess: "in-process"
        case .synthesized: "synthesized"
        }
    }
}

/// A stored entry that a response came from, and that can be removed if the response turns out to be useless.
protocol RemovableOrigin: AnyObject, Sendable {
    /// Removes the entry; does nothing if it is gone.
    func remove() async
}

/// What is known about the request fields that a response answers.
package enum Presentation: Sendable {
    /// Nothing yet: the response is fresh from a transport, or a hook made it.
    case unknown
    /// These were sent, or looked up.
    case presented(PresentedFields)
    /// Another pipeline answered, and the fields that its hooks presented cannot be seen from outside.
    case hidden

    /// The fields if they are known.
    package var presented: PresentedFields? {
        if case .presented(let presented) = self { presented } else { nil }
    }
}

/// The fields of a request together with those that its transport adds, put together on demand.
///
/// Most calls never need them, and a list of lines costs more than everything else in a call that succeeds.
package enum PresentedFields: Sendable {
    /// Only the request's own fields.
    case own(URLRequest)
    /// These fields.
    case fields(HeaderFields)

    /// - Parameter implicit: what the transport adds below the hooks.
    init(_ request: URLRequest, implicit: HeaderFields) {
        if implicit.isEmpty {
            self = .own(request)
        } else {
            self = .fields(implicit.merging(HeaderFields(request.allHTTPHeaderFields ?? [:])))
        }
    }

    /// The fields.
    ///
    /// - Parameter known: those of a request that is probably the same, so that they need not be put together again.
    func fields(probably known: HeaderFields) -> HeaderFields {
        guard case .own(let request) = self, let own = request.allHTTPHeaderFields, own.count == known.count,
            known.allSatisfy({ own[$0.name.rawName]?.hasSameBytes(as: $0.value) ?? false })
        else { return fields }
        return known
    }

    /// The fields; computed on each access if only the request is known.
    package var fields: HeaderFields {
        switch self {
        case .own(let request): HeaderFields(request.allHTTPHeaderFields ?? [:])
        case .fields(let fields): fields
        }
    }
}

/// The last heads in Foundation's form, since making one costs more than a hundred hits.
///
/// A table with a fixed number of places; a head may be at two of them, the newest first. It is found by the bytes of its stored
/// fields, and by the Age that was added to them.
final class FoundationHeads: Sendable {
    static let shared = FoundationHeads()

    private struct Place: Sendable {
        let head: ResponseHead
        let url: String
        let made: HTTPURLResponse

        func isFor(_ head: ResponseHead, url: String) -> Bool {
            self.head.status == head.status && self.head.fields.isIdentical(to: head.fields) && self.url == url
        }
    }

    private final class Shard: Sendable {
        let places = Mutex([Place?](repeating: nil, count: FoundationHeads.placesPerShard))
    }

    private static let shardCount = 16
    private static let placesPerShard = 32
    /// The stored fields of longer heads are not kept.
    private static let longest = 8 << 10

    private let shards = (0..<shardCount).map { _ in Shard() }

    /// The head for an absolute URL, which `make` makes if it is not known, or if the fields are not as they were stored.
    func head(of head: ResponseHead, url: String, make: () -> HTTPURLResponse?) -> HTTPURLResponse? {
        guard let hash = head.fields.quickHash else { return make() }
        let shard = shards[Int(hash % UInt64(FoundationHeads.shardCount))]
        let index = Int(hash / UInt64(FoundationHeads.shardCount) % UInt64(FoundationHeads.placesPerShard))
        let known = shard.places.withLock { places -> HTTPURLResponse? in
            if let place = places[index], place.isFor(head, url: url) { return place.made }
            return places[index ^ 1].flatMap { $0.isFor(head, url: url) ? $0.made : nil }
        }
        if let known { return known }
        guard let made = make() else { return nil }
        if let fields = head.fields.compacted(upTo: FoundationHeads.longest) {
            let place = Place(head: ResponseHead(status: head.status, fields: fields), url: url, made: made)
            shard.places.withLock { places in
                places[index ^ 1] = places[index]
                places[index] = place
            }
        }
        return made
    }
}
