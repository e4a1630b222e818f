// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

private import Synchronization

/// What happens to the copies of one request, in order of arrival, for the one task that waits for it.
final class HedgeMailbox: Sendable {
    enum Message: Sendable {
        /// A copy ended.
        case ended(copy: Int, Result<Response, any Error>, at: MonotonicInstant)
        /// The time of the next copy has come.
        case due
        /// The caller gave up.
        case cancelled
    }

    private struct State {
        var messages: ArraySlice<Message> = []
        var reader: CheckedContinuation<Message, Never>?
        var isCancelled = false
        var isClosed = false
    }

    private let state = Mutex(State())

    /// Delivers a message; cancellation overtakes all others. What comes after ``close()`` is discarded.
    func post(_ message: Message) {
        let (reader, isLate): (CheckedContinuation<Message, Never>?, Bool) = state.withLock { state in
            if state.isClosed { return (nil, true) }
            if case .cancelled = message { state.isCancelled = true }
            if let reader = state.reader {
                state.reader = nil
                return (reader, false)
            }
            state.messages.append(message)
            return (nil, false)
        }
        if let reader { reader.resume(returning: message) }
        if isLate { message.discard() }
    }

    /// The next message; one task waits at a time.
    func next() async -> Message {
        await withCheckedContinuation { continuation in
            let message: Message? = state.withLock { state in
                if state.isCancelled { return .cancelled }
                if let first = state.messages.popFirst() { return first }
                state.reader = continuation
                return nil
            }
            if let message { continuation.resume(returning: message) }
        }
    }

    /// Ends it; responses that nobody asked for any more are discarded.
    func close() {
        let rest = state.withLock { state in
            state.isClosed = true
            defer { state.messages = [] }
            return state.messages
        }
        for message in rest { message.discard() }
    }
}

extension HedgeMailbox.Message {
    fileprivate func discard() {
        if case .ended(_, .success(let response), _) = self { response.body.discard() }
    }
}
