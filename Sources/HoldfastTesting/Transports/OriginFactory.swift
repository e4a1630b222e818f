// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// How the servers are made that ``TransportConformance`` asks.
public struct OriginFactory: Sendable, CustomStringConvertible {
    /// A version of HTTP.
    public enum Version: Sendable, Hashable {
        /// HTTP/1.1 (RFC 9112): a broken exchange costs its connection.
        case http1
        /// HTTP/2 (RFC 9113): exchanges are streams of one connection.
        case http2
    }

    /// What the servers are called.
    public let description: String
    /// What they speak.
    public let version: Version
    /// Starts a server that goes by a script.
    public let start: @Sendable (_ script: LoopbackScript) async throws -> any LoopbackOrigin

    /// A factory.
    ///
    /// - Parameters:
    ///   - description: what the servers are called.
    ///   - version: what they speak.
    ///   - start: starts a server that goes by a script.
    public init(
        _ description: String,
        version: Version = .http1,
        start: @escaping @Sendable (_ script: LoopbackScript) async throws -> any LoopbackOrigin
    ) {
        self.description = description
        self.version = version
        self.start = start
    }

    /// ``LoopbackServer``: HTTP/1.1 without TLS on 127.0.0.1.
    public static let http1 = OriginFactory("HTTP/1.1") { try LoopbackServer.start(script: $0) }
}
