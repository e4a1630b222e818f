// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if canImport(FoundationNetworking)
    internal import Foundation
    public import FoundationNetworking
#else
    public import Foundation
#endif

/// Opens streams: the port to a WebSocket library.
///
/// **Choose.** ``URLSessionStreamTransport`` if the platform's URLSession supports WebSocket (`docs/services/streams.md`),
/// otherwise one over another library; a script in tests. **Implement.** Send the request's fields with the opening handshake
/// (RFC 6455 §4.1); its URL has the scheme ws or wss. Do not retry. Throw `ServiceError` if the stream cannot be opened, and
/// `CancellationError` promptly when the task is cancelled, with nothing left open.
public protocol StreamTransport: Sendable {
    /// Opens a stream and returns once messages can be sent.
    ///
    /// - Parameters:
    ///   - request: the opening handshake's URL and fields.
    ///   - limits: `messageSize` is for the code that assembles messages from frames.
    func open(_ request: URLRequest, limits: StreamLimits) async throws -> any StreamConnection
}

/// An open stream of messages.
///
/// **Implement.** One task at a time receives and one sends, both at once. Take a message from the network only when it is
/// requested, so that a slow reader slows its peer. Throw ``StreamClosedError`` whenever it is known that the peer closed the
/// stream.
public protocol StreamConnection: Sendable {
    /// Sends one message; returns once the next one may be sent.
    func send(_ message: StreamMessage) async throws

    /// The next message. After ``close(code:reason:)``, or when its task is cancelled, it throws promptly.
    func receive() async throws -> StreamMessage

    /// Sends a ping and returns when its pong has arrived (RFC 6455 §5.5.2).
    func ping() async throws

    /// Closes the stream and ends the waits of the other calls. Synchronous and idempotent.
    ///
    /// - Parameters:
    ///   - code: a code that may be sent.
    ///   - reason: a text for the peer; nil: none.
    func close(code: StreamCloseCode, reason: String?)
}

extension HttpService {
    /// A separate URLSession for each stream.
    public var streamTransport: any StreamTransport {
        URLSessionStreamTransport(configuration: sessionConfiguration)
    }
}
