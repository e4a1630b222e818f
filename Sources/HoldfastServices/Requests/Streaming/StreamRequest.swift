// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation
public import HoldfastSemantics

#if canImport(FoundationNetworking)
    public import FoundationNetworking
#endif

/// A request for a stream: a WebSocket on which messages go both ways (RFC 6455).
///
/// Open it with ``schedule(with:over:)``. The request that opens it is built like a ``Request``, from the same service: URL,
/// scheme (wss, or ws if the service is not secure), route, query, header fields (the service's, its asynchronous ones, its
/// credential, the request's own; each overrides those before) and finally ``prepare(_:)``. Coding has defaults if a type is
/// `String`, `Data` or ``StreamMessage``, and in a ``JsonStreamRequest``.
public protocol StreamRequest: Sendable {
    /// The type of messages that are sent.
    associatedtype Message: Sendable
    /// The type that a received message is decoded to.
    associatedtype Result: Sendable

    /// Replaces the service's ``HttpService/apiUrl``; nil by default.
    var url: (any UrlConvertible)? { get }
    /// Whether the stream uses wss, whatever the service and the text of the URL say; nil, the default: as they say.
    var usesSecureProtocol: Bool? { get }
    /// The path below the service's URL; empty by default.
    var routes: HttpRoute { get throws }
    /// The query arguments; none by default.
    var query: HttpQuery { get throws }
    /// Fields of this request; none by default.
    var header: HttpHeader { get throws }
    /// The protocols spoken on the stream, best first (RFC 6455 §1.9); none by default.
    var subprotocols: [String] { get }
    /// Whether the service's credential is sent; `.optional` by default.
    var authorizationRequirement: AuthorizationRequirement { get }
    /// The limits of the stream; by default those of ``StreamLimits``.
    var limits: StreamLimits { get }

    /// Makes the final changes to the request that opens the stream; its URL has the scheme ws or wss.
    func prepare(_ request: URLRequest) async throws -> URLRequest

    /// Encodes a message to be sent.
    func encode(_ message: Message) throws -> StreamMessage

    /// Decodes a received message; if it throws, the reader gets a failure instead of a result, and the stream continues.
    func decode(_ message: StreamMessage) throws -> Result
}

extension StreamRequest {
    public var url: (any UrlConvertible)? { nil }
    public var usesSecureProtocol: Bool? { nil }
    public var routes: HttpRoute { get throws { HttpRoute() } }
    public var query: HttpQuery { get throws { HttpQuery() } }
    public var header: HttpHeader { get throws { HttpHeader() } }
    public var subprotocols: [String] { [] }
    public var authorizationRequirement: AuthorizationRequirement { .optional }
    public var limits: StreamLimits { StreamLimits() }
    public func prepare(_ request: URLRequest) async throws -> URLRequest { request }

    /// Begins to open the stream and returns it at once; messages sent before it is open wait.
    ///
    /// The stream reports errors. Request hooks also get them in `onFailure`, and the service in `process`: once for each
    /// message that cannot be encoded, sent or decoded, and once for the end unless this side closed the stream. Retriers,
    /// caches and the pipeline's hooks are not used for streams.
    ///
    /// - Parameters:
    ///   - client: the client of the service, which is also told of failures.
    ///   - transport: replaces the service's ``HttpService/streamTransport``, for example with a script in tests.
    public func schedule<Service>(
        with client: ServiceClient<Service>,
        over transport: (any StreamTransport)? = nil
    ) -> MessageStream<Self, Service.RequestError> {
        MessageStream(self, client: client, transport: transport ?? client.service.streamTransport)
    }
}

extension StreamRequest where Message == StreamMessage {
    public func encode(_ message: StreamMessage) throws -> StreamMessage { message }
}

extension StreamRequest where Message == String {
    public func encode(_ message: String) throws -> StreamMessage { .text(message) }
}

extension StreamRequest where Message == Data {
    public func encode(_ message: Data) throws -> StreamMessage { .binary(message) }
}

extension StreamRequest where Result == StreamMessage {
    public func decode(_ message: StreamMessage) throws -> StreamMessage { message }
}

extension StreamRequest where Result == String {
    public func decode(_ message: StreamMessage) throws -> String { try message.string() }
}

extension StreamRequest where Result == Data {
    public func decode(_ message: StreamMessage) throws -> Data { message.data }
}

/// A stream of JSON: each message is one document, sent as text and received as text or bytes.
public protocol JsonStreamRequest: StreamRequest where Message: Encodable, Result: Decodable {
    /// Encodes messages that are sent; by default keys in camelCase become snake_case.
    var encoder: JSONEncoder { get }
    /// Decodes received messages; by default keys in snake_case become camelCase.
    var decoder: JSONDecoder { get }
}

extension JsonStreamRequest {
    public var encoder: JSONEncoder { ServiceJSON.encoder(keys: .convertToSnakeCase) }

    public var decoder: JSONDecoder { ServiceJSON.decoder(keys: .convertFromSnakeCase) }

    public func encode(_ message: Message) throws -> StreamMessage {
        .text(String(decoding: try encoder.encode(message), as: UTF8.self))
    }

    public func decode(_ message: StreamMessage) throws -> Result {
        try decoder.decode(Result.self, from: message.data)
    }
}

/// A stream request made from values, if declaring a type is not worthwhile.
public struct AnyStreamRequest<Message: Sendable, Result: Sendable>: StreamRequest {
    public let url: (any UrlConvertible)?
    public let usesSecureProtocol: Bool?
    public let routes: HttpRoute
    public let query: HttpQuery
    public let header: HttpHeader
    public let subprotocols: [String]
    public let authorizationRequirement: AuthorizationRequirement
    public let limits: StreamLimits
    private let encoding: @Sendable (Message) throws -> StreamMessage
    private let decoding: @Sendable (StreamMessage) throws -> Result

    /// A request; parameters that are left out have the defaults of ``StreamRequest``.
    public init(
        url: (any UrlConvertible)? = nil,
        usesSecureProtocol: Bool? = nil,
        routes: HttpRoute = [],
        query: HttpQuery = [:],
        header: HttpHeader = [:],
        subprotocols: [String] = [],
        authorizationRequirement: AuthorizationRequirement = .optional,
        limits: StreamLimits = StreamLimits(),
        encode: @escaping @Sendable (Message) throws -> StreamMessage,
        decode: @escaping @Sendable (StreamMessage) throws -> Result
    ) {
        self.url = url
        self.usesSecureProtocol = usesSecureProtocol
        self.routes = routes
        self.query = query
        self.header = header
        self.subprotocols = subprotocols
        self.authorizationRequirement = authorizationRequirement
        self.limits = limits
        encoding = encode
        decoding = decode
    }

    public func encode(_ message: Message) throws -> StreamMessage { try encoding(message) }

    public func decode(_ message: StreamMessage) throws -> Result { try decoding(message) }
}

extension AnyStreamRequest where Message == StreamMessage, Result == StreamMessage {
    /// A request whose messages are not encoded or decoded.
    public init(
        url: (any UrlConvertible)? = nil,
        usesSecureProtocol: Bool? = nil,
        routes: HttpRoute = [],
        query: HttpQuery = [:],
        header: HttpHeader = [:]
    ) {
        self.init(
            url: url,
            usesSecureProtocol: usesSecureProtocol,
            routes: routes,
            query: query,
            header: header,
            encode: { $0 },
            decode: { $0 }
        )
    }
}
