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
            if Task.isCancelled { return (.failure(CancellationError()), nil) }
            if let element = elements.popFirst() { return (.success(element), receiver.take()) }
            if isEnded {
                if let error = error.take() { return (.failure(error), nil) }
                return (.success(nil), nil)
            }
            reader = (id, continuation)
            return (nil, nil)
        }
    }

    private let state = Mutex(State())
    private let capacity: Int

    init(capacity: Int) {
        self.capacity = max(capacity, 1)
    }

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
    /// - Throws: `CancellationError` promptly when the task is cancelled, and `.unsupported` to a second reader.
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
            let reader = state.withLock { state in
                state.reader?.id == id ? state.reader.take() : nil
            }
            reader?.continuation.resume(throwing: CancellationError())
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
