// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import HoldfastSemantics

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
