// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Holdfast
private import Synchronization

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
                return (error, nil)
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

    init(capacity: Int) {
        self.capacity = max(capacity, 1)
    }

    /// How many messages wait, the one in hand included.
    var count: Int {
        state.withLock { state in
            state.waiting.count { $0.item.message != nil } + (state.inHand?.item.message == nil ? 0 : 1)
        }
    }

    /// Waits in line until the message was sent; without a message, until the stream is open and all before it was sent.
    ///
    /// - Throws: what the stream ended with; `.tooManyInFlight`; `CancellationError` promptly when the task is cancelled: then the
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
