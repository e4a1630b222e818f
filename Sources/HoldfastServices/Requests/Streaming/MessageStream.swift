// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import Holdfast

/// A stream of messages, open or opening: send messages, and iterate over those that arrive.
///
/// As an `AsyncSequence` it has an element for each message that arrives: the decoded result, or the reason why decoding
/// failed. It ends by throwing the error that ended the stream: ``StreamClosedError`` with the code if the peer closed it (even
/// with 1000). After ``close(code:reason:)``, it ends without an error. Messages that arrived before the end come first. One
/// task reads at a time; several iterators share the messages. A few messages wait for the reader; beyond that, the peer has to
/// wait (``StreamLimits``).
///
/// The stream is closed with code 1001 when its reader's task is cancelled, and when the last copy of it and of its iterators
/// is released. That is not reported as a failure.
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
            open: { try await StreamOpening(request).open(client, transport: transport) },
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
        } catch {
            if let error = error as? ServiceError, error.isOfOneMessage { await owner.core.messageFailed(error) }
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

    public func makeAsyncIterator() -> Iterator {
        Iterator(owner: owner, mapError: mapError)
    }

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

    private func encoded(_ message: Request.Message) throws -> StreamMessage {
        let encoded: StreamMessage
        do {
            encoded = try request.encode(message)
        } catch let error as ServiceError {
            throw error
        } catch {
            throw ServiceError(
                .encodingFailed,
                "A message of \(Request.self) cannot be encoded; see the cause.",
                cause: error,
                progress: .notSent
            )
        }
        guard encoded.byteCount <= limits.messageSize else { throw StreamLimits.tooLong(encoded, limits: limits) }
        return encoded
    }
}
