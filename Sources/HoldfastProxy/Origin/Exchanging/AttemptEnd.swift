// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    private import Synchronization

    /// What ends an attempt from outside before its head is there: the caller's cancellation or the deadline, whichever comes first.
    final class AttemptEnd: Sendable {
        /// Why it ended.
        enum Reason: Sendable, Hashable {
            case cancelled, deadline
        }

        /// Thrown by what the end broke off; whoever catches it asks for the ``reason``.
        struct BrokenOff: Error {}

        private struct State {
            var reason: Reason?
            var isOver = false
            var action: (@Sendable () -> Void)?
        }

        private let state = Mutex(State())

        /// Why the attempt was ended; nil while it was not.
        var reason: Reason? { state.withLock { $0.reason } }

        /// Says how what is being done now is broken off; in place of what was said before. At once where the attempt has ended.
        func whenEnded(_ action: @escaping @Sendable () -> Void) {
            let hasEnded = state.withLock { state in
                guard !state.isOver else { return false }
                state.action = state.reason == nil ? action : nil
                return state.reason != nil
            }
            if hasEnded { action() }
        }

        /// Ends the attempt; without effect when it is over.
        func end(_ reason: Reason) {
            let action: (@Sendable () -> Void)? = state.withLock { state in
                guard !state.isOver, state.reason == nil else { return nil }
                state.reason = reason
                defer { state.action = nil }
                return state.action
            }
            action?()
        }

        /// The head is there: from now on nothing ends the attempt.
        ///
        /// - Returns: false when it has been ended before.
        func finish() -> Bool {
            state.withLock { state in
                guard state.reason == nil else { return false }
                state.isOver = true
                state.action = nil
                return true
            }
        }
    }
#endif
