// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// How much of a body has been written so far, and who waits for more of it.
///
/// It only counts. The bytes are kept elsewhere, and must be in place before ``advance(to:)`` reports them.
package final class BodyProgress: Sendable {
    /// How a body ended.
    package enum Ending: Sendable {
        /// All bytes are there.
        case whole
        /// No more will come.
        case failed(StoreError)
    }

    private struct Waiter {
        let offset: Int
        let continuation: CheckedContinuation<Void, Never>
    }

    private struct State {
        var available = 0
        var ending: Ending?
        var waiters: [UInt64: Waiter] = [:]
        var nextWaiter: UInt64 = 0

        /// Removes and returns the waiters that need not wait any longer.
        mutating func ready() -> [CheckedContinuation<Void, Never>] {
            if waiters.isEmpty { return [] }
            let ended = ending != nil
            let ids = waiters.filter { ended || $0.value.offset < available }.map(\.key)
            return ids.compactMap { waiters.removeValue(forKey: $0)?.continuation }
        }
    }

    private let state = Mutex(State())

    /// Nothing is there yet.
    package init() {}

    /// The length once the body is whole; nil before, and for a body that failed.
    package var wholeLength: Int? {
        state.withLock { state in
            if case .whole? = state.ending { state.available } else { nil }
        }
    }

    /// Reports that the bytes before `count` can be read.
    package func advance(to count: Int) {
        let ready = state.withLock { state in
            state.available = max(state.available, count)
            return state.ready()
        }
        for continuation in ready { continuation.resume() }
    }

    /// Reports that no more bytes will come; only the first ending counts.
    ///
    /// - Returns: whether this was the first.
    @discardableResult
    package func end(_ ending: Ending) -> Bool {
        let (isFirst, ready) = state.withLock { state in
            let isFirst = state.ending == nil
            if isFirst { state.ending = ending }
            return (isFirst, state.ready())
        }
        for continuation in ready { continuation.resume() }
        return isFirst
    }

    /// Waits until the byte at `offset` can be read or the body has ended.
    ///
    /// Cancelling the task ends the wait at once. If the answer is known already, this neither waits nor sets up a cancellation
    /// handler.
    ///
    /// - Returns: how many bytes can be read; at most `offset` if the whole body ends there.
    /// - Throws: `.cancelled`, or the error with which the body failed.
    package func available(past offset: Int) async throws(StoreError) -> Int {
        while true {
            if let known = try known(past: offset) { return known }
            if Task.isCancelled { throw Self.cancelled }
            let id = state.withLock { state in
                state.nextWaiter &+= 1
                return state.nextWaiter
            }
            await withTaskCancellationHandler {
                await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
                    let resumesNow = state.withLock { state in
                        // A cancellation before this line is seen here; a later one finds the waiter.
                        if state.ending != nil || state.available > offset || Task.isCancelled { return true }
                        state.waiters[id] = Waiter(offset: offset, continuation: continuation)
                        return false
                    }
                    if resumesNow { continuation.resume() }
                }
            } onCancel: {
                state.withLock { $0.waiters.removeValue(forKey: id) }?.continuation.resume()
            }
        }
    }

    private func known(past offset: Int) throws(StoreError) -> Int? {
        let (available, ending) = state.withLock { ($0.available, $0.ending) }
        switch ending {
        case .failed(let error)?: throw error
        case .whole?: return available
        case nil: return available > offset ? available : nil
        }
    }

    private static let cancelled = StoreError(.cancelled, "The task was cancelled while it waited for body bytes.")
}
