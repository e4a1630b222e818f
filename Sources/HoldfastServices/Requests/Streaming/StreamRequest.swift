// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation
internal import Holdfast
public import HoldfastSemantics

#if canImport(FoundationNetworking)
    public import FoundationNetworking
#endif

/// A request for a stream: a WebSocket on which messages go both ways (RFC 6455).
///
/// Open it by ``schedule(with:over:)``. The request that opens it is built like a ``Request``, from the same service: URL, scheme
/// (wss, or ws where the service is not secure), route, query, header fields (the service's, its asynchronous ones, its
/// credential, the request's own; each wins over those before) and ``prepare(_:)`` at the end. Coding has defaults where a type
/// is `String`, `Data` or ``StreamMessage``, and in a ``JsonStreamRequest``.
public protocol StreamRequest: Sendable {
    /// What is sent.
    associatedtype Message: Sendable
    /// What a received message is decoded to.
    associatedtype Result: Sendable

    /// Takes the place of the service's ``HttpService/apiUrl``; nil by default.
    var url: (any UrlConvertible)? { get }
    /// Takes the place of the service's ``HttpService/usesSecureProtocol``; nil by default.
    var usesSecureProtocol: Bool? { get }
    /// The path below the service's URL; empty by default.
    var routes: HttpRoute { get throws }
    /// The query arguments; none by default.
    var query: HttpQuery { get throws }
    /// Fields of this request; none by default.
    var header: HttpHeader { get throws }
    /// The protocols spoken on the stream, best first (RFC 6455 §1.9); none by default.
    var subprotocols: [String] { get }
    /// Whether the service's credential is wanted; `.optional` by default.
    var authorizationRequirement: AuthorizationRequirement { get }
    /// What the stream may hold; the defaults of ``StreamLimits``.
    var limits: StreamLimits { get }

    /// The last word on the request that opens the stream; its URL has the scheme ws or wss.
    func prepare(_ request: URLRequest) async throws -> URLRequest

    /// Makes what is sent of a message.
    func encode(_ message: Message) throws -> StreamMessage

    /// Makes a result of what came. Where it throws the reader gets a failure in place of a result, and the stream goes on.
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

    /// Begins to open the stream and returns it at once; what is sent before it is open waits.
    ///
    /// What goes wrong is told by the stream. Request hooks hear of it by `onFailure`, the service by `process`: once for each
    /// message that cannot be encoded, sent or decoded, and once for the end unless this side asked for it. Retriers, caches and
    /// the pipeline's hooks have no part in streams.
    ///
    /// - Parameters:
    ///   - client: the service, and who is told of failures.
    ///   - transport: in place of the service's ``HttpService/streamTransport``; a script in tests.
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
