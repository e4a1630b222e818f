// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Holdfast
private import Synchronization

/// The messages between the task that receives and the one that reads: a few wait here, and then the receiver does.
final class StreamInbox<Element: Sendable>: Sendable {
    private struct State {
        var elements: ArraySlice<Element> = []
        var isEnded = false
        var error: (any Error)?
        var lastReader: UInt64 = 0
        var reader: (id: UInt64, continuation: CheckedContinuation<Element?, any Error>)?
        var receiver: CheckedContinuation<Void, Never>?

        mutating func taken(
            by id: UInt64,
            _ continuation: CheckedContinuation<Element?, any Error>
        ) -> (outcome: Result<Element?, any Error>?, receiver: CheckedContinuation<Void, Never>?) {
            // Who reads keeps the stream, whatever becomes of others who try.
            guard reader == nil else {
                let error = ServiceError(
                    .unsupported,
                    "A stream has one reader at a time; hand its results on from there."
                )
                return (.failure(error), nil)
            }
            let isOver = isEnded && elements.isEmpty
            if isOver, error == nil { return (.success(nil), nil) }
            if Task.isCancelled { return (.failure(CancellationError()), abandoned()) }
            if let element = elements.popFirst() { return (.success(element), receiver.take()) }
            if isOver, let error = error.take() { return (.failure(error), nil) }
            reader = (id, continuation)
            return (nil, nil)
        }

        /// The reader was cancelled, so nothing is wanted any more; the receiver that waits for room, if there is one.
        mutating func abandoned() -> CheckedContinuation<Void, Never>? {
            isEnded = true
            elements = []
            error = nil
            return receiver.take()
        }
    }

    private let state = Mutex(State())
    private let capacity: Int

    init(capacity: Int) { self.capacity = max(capacity, 1) }

    /// Puts an element in and returns when there is room for another one, or when nothing is wanted any more.
    func put(_ element: Element) async {
        let reader = state.withLock { state -> CheckedContinuation<Element?, any Error>? in
            guard !state.isEnded else { return nil }
            if let reader = state.reader.take() { return reader.continuation }
            state.elements.append(element)
            return nil
        }
        if let reader { return reader.resume(returning: element) }
        await withCheckedContinuation { continuation in
            let hasRoom = state.withLock { state in
                if state.isEnded || state.elements.count < capacity { return true }
                state.receiver = continuation
                return false
            }
            if hasRoom { continuation.resume() }
        }
    }

    /// The next element; after the end what is left, then the error, if there is one, once, and nil ever after.
    ///
    /// - Throws: `CancellationError` promptly when the task is cancelled, which ends it and drops what is left; and
    ///   `.unsupported` to a second reader.
    func take() async throws -> Element? {
        let id = state.withLock { state in
            state.lastReader += 1
            return state.lastReader
        }
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let (outcome, receiver) = state.withLock { state in state.taken(by: id, continuation) }
                receiver?.resume()
                if let outcome { continuation.resume(with: outcome) }
            }
        } onCancel: {
            let (reader, receiver) = state.withLock {
                state -> (CheckedContinuation<Element?, any Error>?, CheckedContinuation<Void, Never>?) in
                guard state.reader?.id == id else { return (nil, nil) }
                return (state.reader.take()?.continuation, state.abandoned())
            }
            receiver?.resume()
            reader?.resume(throwing: CancellationError())
        }
    }

    /// Ends it: with an error, or in good order. Only the first end counts.
    func end(_ error: (any Error)?) {
        let (reader, receiver) = state.withLock { state in
            if !state.isEnded {
                state.isEnded = true
                // A waiting reader gets it at once; then nobody else does.
                state.error = state.reader == nil ? error : nil
            }
            return (state.reader.take()?.continuation, state.receiver.take())
        }
        receiver?.resume()
        if let error { reader?.resume(throwing: error) } else { reader?.resume(returning: nil) }
    }
}

/// A message cannot be sent, and the stream goes on; the stream's own end may have an error with the same code.
struct RefusedMessage: Error {
    let error: any Error
}

/// The messages that wait to be sent, in the order they came, each with the task that waits for that.
final class StreamOutbox: Sendable {
    /// What is to be sent; without a message it is only to be reached.
    struct Item: Sendable {
        fileprivate let id: UInt64
        let message: StreamMessage?
    }

    private struct Waiting {
        let item: Item
        let continuation: CheckedContinuation<Void, any Error>
    }

    private struct State {
        var lastID: UInt64 = 0
        var waiting: ArraySlice<Waiting> = []
        var inHand: Waiting?
        var error: (any Error)?
        var sender: CheckedContinuation<Void, Never>?

        mutating func entered(
            _ entry: Waiting,
            capacity: Int
        ) -> (error: (any Error)?, sender: CheckedContinuation<Void, Never>?) {
            if Task.isCancelled { return (CancellationError(), nil) }
            if let error { return (error, nil) }
            guard entry.item.message == nil || waiting.count < capacity else {
                let error = ServiceError(
                    .tooManyInFlight,
                    "\(waiting.count) messages wait to be sent already; wait for a send to return before the next one, or raise "
                        + "`StreamLimits.unsentMessages`."
                )
                return (RefusedMessage(error: error), nil)
            }
            waiting.append(entry)
            return (nil, sender.take())
        }

        mutating func left(_ id: UInt64) -> Waiting? {
            if inHand?.item.id == id { return inHand.take() }
            guard let index = waiting.firstIndex(where: { $0.item.id == id }) else { return nil }
            return waiting.remove(at: index)
        }
    }

    private let state = Mutex(State())
    private let capacity: Int

    init(capacity: Int) { self.capacity = max(capacity, 1) }

    /// How many messages wait, the one in hand included.
    var count: Int {
        state.withLock { state in
            state.waiting.count { $0.item.message != nil } + (state.inHand?.item.message == nil ? 0 : 1)
        }
    }

    /// Waits in line until the message was sent; without a message, until the stream is open and all before it was sent.
    ///
    /// - Throws: what the stream ended with; ``RefusedMessage``; `CancellationError` promptly when the task is cancelled: then the
    ///   message is not sent, unless it is being sent already.
    func submit(_ message: StreamMessage?) async throws {
        let id = state.withLock { state in
            state.lastID += 1
            return state.lastID
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let entry = Waiting(item: Item(id: id, message: message), continuation: continuation)
                let (error, sender) = state.withLock { state in state.entered(entry, capacity: capacity) }
                sender?.resume()
                if let error { continuation.resume(throwing: error) }
            }
        } onCancel: {
            let entry = state.withLock { state in state.left(id) }
            entry?.continuation.resume(throwing: CancellationError())
        }
    }

    /// The next item, once there is one; nil at the end. For one task.
    func next() async -> Item? {
        while true {
            let (item, isEnded) = state.withLock { state -> (Item?, Bool) in
                guard state.error == nil else { return (nil, true) }
                state.inHand = state.waiting.popFirst()
                return (state.inHand?.item, false)
            }
            if let item { return item }
            if isEnded { return nil }
            await withCheckedContinuation { continuation in
                let isWaiting = state.withLock { state in
                    guard state.error == nil, state.waiting.isEmpty else { return false }
                    state.sender = continuation
                    return true
                }
                if !isWaiting { continuation.resume() }
            }
        }
    }

    /// The item was sent.
    func sent(_ item: Item) {
        let entry = state.withLock { state in
            state.inHand?.item.id == item.id ? state.inHand.take() : nil
        }
        entry?.continuation.resume()
    }

    /// Lets nobody in any more; those who wait stay until ``end(_:)``.
    func refuse(_ error: any Error) {
        let sender = state.withLock { state in
            state.error = state.error ?? error
            return state.sender.take()
        }
        sender?.resume()
    }

    /// Ends it: all who wait, and all who come, fail with this error. Only the first end counts.
    func end(_ error: any Error) {
        let (entries, sender) = state.withLock { state in
            state.error = state.error ?? error
            let entries = (state.inHand.map { [$0] } ?? []) + state.waiting
            state.waiting = []
            state.inHand = nil
            return (entries, state.sender.take())
        }
        sender?.resume()
        for entry in entries { entry.continuation.resume(throwing: error) }
    }
}
