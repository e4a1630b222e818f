// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Holdfast
private import Synchronization

/// Runs one stream: opens it, moves messages between its connection and its two boxes, and ends it once.
///
/// Its tasks hold this, and anyone who uses the stream holds a ``StreamOwner``: when the last of those is gone the tasks end.
final class StreamCore<Value: Sendable>: Sendable {
    typealias Element = Result<Value, any Error>

    private struct State {
        var isEnded = false
        var connection: (any StreamConnection)?
        var task: Task<Void, Never>?
    }

    let inbox: StreamInbox<Element>
    let outbox: StreamOutbox
    private let limits: StreamLimits
    /// Tells the request hooks and the service of a failure, of the stream or of one message.
    let announce: @Sendable (any Error) async -> Void
    private let state = Mutex(State())

    init(limits: StreamLimits, announce: @escaping @Sendable (any Error) async -> Void) {
        self.limits = limits
        self.announce = announce
        inbox = StreamInbox(capacity: limits.unreadMessages)
        outbox = StreamOutbox(capacity: limits.unsentMessages)
    }

    func start(
        open: @escaping @Sendable () async throws -> any StreamConnection,
        decode: @escaping @Sendable (StreamMessage) throws -> Value
    ) {
        let task = Task { await run(open, decode: decode) }
        let isEnded = state.withLock { state in
            state.task = state.isEnded ? nil : task
            return state.isEnded
        }
        if isEnded { task.cancel() }
    }

    /// Ends the stream because this side wants it, or lost interest: nobody is told of a failure.
    ///
    /// - Parameter error: what those get who wait to send; nil for readers who are to see a good end.
    func stop(_ code: StreamCloseCode, reason: String?, error: any Error, isGood: Bool) {
        guard let ended = claimEnd() else { return }
        ended.connection?.close(code: code.isSendable ? code : .normalClosure, reason: reason)
        outbox.end(error)
        inbox.end(isGood ? nil : error)
        ended.task?.cancel()
    }

    /// Ends the stream because of a failure; readers see it once those who are to be told were told.
    func fail(_ error: any Error, closing code: StreamCloseCode = .goingAway) async {
        guard let ended = claimEnd() else { return }
        ended.connection?.close(code: code, reason: nil)
        // At once, so that who is told of the failure may send without waiting for the end of being told.
        outbox.refuse(error)
        await announce(error)
        outbox.end(error)
        inbox.end(error)
        // Last, since it may be the task that runs this.
        ended.task?.cancel()
    }

    /// Sends a ping once the stream is open, and returns when it was answered.
    func ping() async throws {
        try await outbox.submit(nil)
        guard let connection = state.withLock({ $0.connection }) else { return try await outbox.submit(nil) }
        try await connection.ping()
    }

    private func claimEnd() -> State? {
        state.withLock { state in
            guard !state.isEnded else { return nil }
            let ended = state
            state = State()
            state.isEnded = true
            return ended
        }
    }

    private func run(
        _ open: @Sendable () async throws -> any StreamConnection,
        decode: @escaping @Sendable (StreamMessage) throws -> Value
    ) async {
        do {
            let connection = try await open()
            let isWanted = state.withLock { state in
                if !state.isEnded { state.connection = connection }
                return !state.isEnded
            }
            guard isWanted else { return connection.close(code: .goingAway, reason: nil) }
            await withTaskGroup(of: Void.self) { group in
                group.addTask { await self.sendAll(through: connection) }
                await self.receiveAll(from: connection, decode)
            }
        } catch {
            await end(error)
        }
    }

    private func sendAll(through connection: any StreamConnection) async {
        while let item = await outbox.next() {
            do {
                if let message = item.message { try await connection.send(message) }
                outbox.sent(item)
            } catch {
                return await end(error)
            }
        }
    }

    private func receiveAll(
        from connection: any StreamConnection,
        _ decode: @Sendable (StreamMessage) throws -> Value
    ) async {
        while !Task.isCancelled {
            do {
                let message = try await connection.receive()
                guard message.byteCount <= limits.messageSize else {
                    return await fail(StreamLimits.tooLong(message, limits: limits), closing: .messageTooBig)
                }
                await inbox.put(await decoded(message, decode: decode))
            } catch {
                return await end(error)
            }
        }
    }

    private func decoded(_ message: StreamMessage, decode: (StreamMessage) throws -> Value) async -> Element {
        do {
            return .success(try decode(message))
        } catch {
            let failure = ServiceError(
                .decodingFailed,
                "A message of the stream cannot be decoded as \(Value.self); compare the type with what the server sends.",
                cause: error
            )
            await announce(failure)
            return .failure(failure)
        }
    }

    private func end(_ error: any Error) async {
        guard error.isCancellation else { return await fail(error) }
        stop(.goingAway, reason: nil, error: CancellationError(), isGood: false)
    }
}

/// Ends a stream when the last one who could use it lets go of it.
final class StreamOwner<Value: Sendable>: Sendable {
    let core: StreamCore<Value>

    init(_ core: StreamCore<Value>) { self.core = core }

    deinit { core.stop(.goingAway, reason: nil, error: CancellationError(), isGood: false) }
}

extension StreamLimits {
    /// A message that is longer than it may be.
    static func tooLong(_ message: StreamMessage, limits: StreamLimits) -> ServiceError {
        ServiceError(
            .bodyTooLarge,
            "A message of \(message.byteCount) bytes exceeds the limit of \(limits.messageSize); raise "
                + "`StreamLimits.messageSize`, or divide the message."
        )
    }
}
