// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Redis
    internal import HoldfastStorage
    private import Synchronization

    /// The tasks of this process that wait for leases of others, by token.
    final class LeaseBoard: Sendable {
        private struct State {
            var waiters: [String: [UInt64: CheckedContinuation<LeaseOutcome?, Never>]] = [:]
            /// Ends that were reported while no one was waiting yet, but someone was about to.
            var expected: [String: (count: Int, outcome: LeaseOutcome?)] = [:]
            var nextID: UInt64 = 0
        }

        private let state = Mutex(State())

        /// Announces a wait for a lease; must be followed by ``forget(_:)``.
        func expect(_ token: String) {
            state.withLock { $0.expected[token, default: (0, nil)].count += 1 }
        }

        func forget(_ token: String) {
            state.withLock { state in
                state.expected[token]?.count -= 1
                if state.expected[token]?.count == 0 { state.expected[token] = nil }
            }
        }

        /// A message of the channel: "token outcome".
        func receive(_ message: String) {
            let words = message.split(separator: " ", maxSplits: 1).map(String.init)
            guard words.count == 2, let outcome = LeaseOutcome(rawValue: words[1]) else { return }
            let woken = state.withLock { state in
                if state.expected[words[0]] != nil { state.expected[words[0]]?.outcome = outcome }
                return state.waiters.removeValue(forKey: words[0]) ?? [:]
            }
            for continuation in woken.values { continuation.resume(returning: outcome) }
        }

        /// Waits for the end of an expected lease; nil if the task was cancelled.
        func outcome(of token: String) async -> LeaseOutcome? {
            let id = state.withLock { state in
                state.nextID &+= 1
                return state.nextID
            }
            return await withTaskCancellationHandler {
                await withCheckedContinuation { (continuation: CheckedContinuation<LeaseOutcome?, Never>) in
                    let (isOver, known): (Bool, LeaseOutcome?) = state.withLock { state in
                        if let outcome = state.expected[token]?.outcome { return (true, outcome) }
                        if Task.isCancelled { return (true, nil) }
                        state.waiters[token, default: [:]][id] = continuation
                        return (false, nil)
                    }
                    if isOver { continuation.resume(returning: known) }
                }
            } onCancel: {
                let continuation = state.withLock { state in
                    let continuation = state.waiters[token]?.removeValue(forKey: id)
                    if state.waiters[token]?.isEmpty ?? false { state.waiters[token] = nil }
                    return continuation
                }
                continuation?.resume(returning: nil)
            }
        }

        /// How many tasks wait.
        var count: Int { state.withLock { $0.waiters.values.reduce(0) { $0 + $1.count } } }
    }
#endif
