// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import Holdfast

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// A stream of messages, open or opening: send messages, and iterate over those that arrive.
///
/// As an `AsyncSequence` it has an element for each message that arrives: the decoded result, or the reason why decoding
/// failed. It ends by throwing the error that ended the stream: ``StreamClosedError`` with the code if the peer closed it (even
/// with 1000). After ``close(code:reason:)``, it ends without an error. Messages that arrived before the end come first. One
/// task reads at a time; several iterators share the messages. A few messages wait for the reader; beyond that, the peer has to
/// wait (``StreamLimits``).
///
/// The stream is closed with code 1001 when its reader's task is cancelled, and when the last copy of it and of its iterators
/// is released. That is not reported as a failure, and messages that nobody has read are dropped.
public struct MessageStream<Request: StreamRequest, Failure: Error>: AsyncSequence, Sendable {
    /// The decoded result of a message, or the reason why decoding failed.
    public typealias Element = Swift.Result<Request.Result, Failure>

    private let owner: StreamOwner<Request.Result>
    private let request: Request
    private let limits: StreamLimits
    private let mapError: @Sendable (any Error) -> Failure

    init<Service>(_ request: Request, client: ServiceClient<Service>, transport: any StreamTransport)
    where Service.RequestError == Failure {
        let limits = request.limits
        let core = StreamCore<Request.Result>(limits: limits) { error in
            for hook in client.requestHooks.reversed() { await hook.onFailure(error) }
            client.service.process(error)
        }
        self.request = request
        self.limits = limits
        mapError = { client.service.mapError($0) }
        owner = StreamOwner(core)
        core.start(
            open: { try await StreamOpening(stream: request).open(client, transport: transport) },
            decode: { try request.decode($0) }
        )
    }

    /// Sends a message and returns when it is on its way; messages are sent in the order of these calls, and wait until the
    /// stream is open.
    ///
    /// - Throws: one of these, mapped by the service's `mapError`: `.encodingFailed`; `.bodyTooLarge`; `.tooManyInFlight` if
    ///   too many wait; the error that ended the stream; `CancellationError` promptly, and then the message may or may not have
    ///   been sent.
    public func send(_ message: Request.Message) async throws(Failure) {
        do {
            try await owner.core.outbox.submit(try encoded(message))
        } catch let refused as RefusedMessage {
            await owner.core.announce(refused.error)
            throw mapError(refused.error)
        } catch {
            throw mapError(error)
        }
    }

    /// How many messages wait to be sent, including the one that is being sent.
    public var unsentMessages: Int { owner.core.outbox.count }

    /// Returns when the stream is open and earlier messages are on their way.
    public func waitUntilOpen() async throws(Failure) {
        do {
            try await owner.core.outbox.submit(nil)
        } catch {
            throw mapError(error)
        }
    }

    /// Sends a ping once the stream is open, and returns when its pong has arrived.
    ///
    /// The transport answers the peer's pings.
    public func ping() async throws(Failure) {
        do {
            try await owner.core.ping()
        } catch {
            throw mapError(error)
        }
    }

    /// Closes the stream at once: waiting sends fail with ``StreamClosedError``, and the sequence ends after the messages that
    /// have arrived.
    ///
    /// Synchronous; without effect on a stream that has ended.
    ///
    /// - Parameters:
    ///   - code: the code for the peer; 1000 by default, and instead of a code that may not be sent (RFC 6455 §7.4.1).
    ///   - reason: a text for the peer, at most 123 bytes of UTF-8; a longer one is cut.
    public func close(code: StreamCloseCode = .normalClosure, reason: String? = nil) {
        var left = 123
        let reason = reason.map { text in
            String(
                text.prefix { character in
                    left -= character.utf8.count
                    return left >= 0
                }
            )
        }
        let error = StreamClosedError(code, reason: reason, isByPeer: false)
        owner.core.stop(code, reason: reason, error: error, isGood: true)
    }

    public func makeAsyncIterator() -> Iterator { Iterator(owner: owner, mapError: mapError) }

    /// Returns the messages that arrive.
    public struct Iterator: AsyncIteratorProtocol {
        fileprivate let owner: StreamOwner<Request.Result>
        fileprivate let mapError: @Sendable (any Error) -> Failure

        public mutating func next() async throws(Failure) -> Element? {
            do {
                return try await owner.core.inbox.take()?.mapError(mapError)
            } catch {
                if error.isCancellation {
                    owner.core.stop(.goingAway, reason: nil, error: CancellationError(), isGood: false)
                }
                throw mapError(error)
            }
        }

        public mutating func next(isolation actor: isolated (any Actor)?) async throws(Failure) -> Element? {
            try await next()
        }
    }

    private func encoded(_ message: Request.Message) throws(RefusedMessage) -> StreamMessage {
        do {
            let encoded = try ServiceError.encoding("A message of \(Request.self)") { try request.encode(message) }
            guard encoded.byteCount <= limits.messageSize else { throw StreamLimits.tooLong(encoded, limits: limits) }
            return encoded
        } catch {
            throw RefusedMessage(error: error)
        }
    }
}

/// The request that opens a stream, built as any typed request is.
struct StreamOpening<Stream: StreamRequest>: Request {
    typealias Result = Void

    let stream: Stream

    var url: (any UrlConvertible)? { stream.url }
    var usesSecureProtocol: Bool? { stream.usesSecureProtocol }
    var routes: HttpRoute { get throws { try stream.routes } }
    var query: HttpQuery { get throws { try stream.query } }
    var authorizationRequirement: AuthorizationRequirement { stream.authorizationRequirement }

    var header: HttpHeader {
        get throws {
            var header = try stream.header
            if !stream.subprotocols.isEmpty, !header.contains("Sec-WebSocket-Protocol") {
                header["Sec-WebSocket-Protocol"] = stream.subprotocols.joined(separator: ", ")
            }
            return header
        }
    }

    func prepare(_ request: URLRequest) async throws -> URLRequest {
        var request = request
        if let text = request.url?.absoluteString, text.hasPrefix("http") {
            request.url = URL(string: "ws" + text.dropFirst(4))
        }
        return try await stream.prepare(request)
    }

    /// The request; refused where a credential is required that only the pipeline would have added, which has no part in streams.
    private func built<Service>(by client: ServiceClient<Service>) async throws -> URLRequest {
        let built = try await client.build(self)
        guard authorizationRequirement != .required || built.bearsCredential else {
            throw ServiceError(
                .authorizationFailed,
                "This stream needs a credential and its request has none: log in first. The authorization of the pipeline's "
                    + "configuration has no part in streams; give the service an `authorization`.",
                progress: .notSent
            )
        }
        try built.urlRequest.checkHead()
        return built.urlRequest
    }

    /// Builds the request and opens the stream, both within its time: a token that never comes must not hold it for ever.
    func open<Service>(
        _ client: ServiceClient<Service>,
        transport: any StreamTransport
    ) async throws -> any StreamConnection {
        let limits = stream.limits
        let clock = client.pipeline.configuration.clock
        let open: @Sendable () async throws -> any StreamConnection = {
            let request = try await built(by: client)
            return try await transport.open(request, limits: limits)
        }
        guard let timeout = limits.openTimeout ?? client.pipeline.configuration.attemptTimeout else {
            return try await open()
        }
        let deadline = clock.now.advanced(by: timeout)
        do {
            return try await withDeadline(
                deadline,
                on: clock,
                discard: { $0.close(code: .goingAway, reason: nil) },
                operation: open
            )
        } catch let error as ServiceError where error.code == .timeout && clock.now >= deadline {
            throw ServiceError(
                .timeout,
                "The stream was not open within \(timeout); raise `StreamLimits.openTimeout`, or find out why the server is slow, or "
                    + "what the request's header fields waited for.",
                cause: error,
                progress: error.progress
            )
        }
    }
}
