// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import Holdfast

    /// The calls that ended last, and the failed attempts of those that are under way; both in bounded number.
    struct RecentCalls: Sendable {
        /// How many calls are kept.
        static let limit = 200
        /// How many calls under way may have failed attempts at a time; of more the oldest lose theirs.
        static let pendingLimit = 256
        /// How many failed attempts of a call are kept, the first ones.
        static let attemptLimit = 16

        private var ring: [NotedCall] = []
        private var next = 0
        private var pending: [CallID: [NotedAttempt]] = [:]
        private var pendingOrder: [CallID] = []
        private var oldestPending = 0
        /// How many calls have ended so far.
        private(set) var count: UInt64 = 0

        /// How many calls under way have failed attempts.
        var pendingCount: Int { pending.count }

        /// Takes note of an attempt that failed.
        mutating func failed(_ attempt: NotedAttempt, of call: CallID) {
            if let known = pending[call]?.count {
                if known < RecentCalls.attemptLimit { pending[call]?.append(attempt) }
                return
            }
            pending[call] = [attempt]
            // Of a call whose end is never told the attempts would stay, so each has to make room some day.
            if pendingOrder.count < RecentCalls.pendingLimit {
                pendingOrder.append(call)
            } else {
                pending[pendingOrder[oldestPending]] = nil
                pendingOrder[oldestPending] = call
                oldestPending = (oldestPending + 1) % RecentCalls.pendingLimit
            }
        }

        /// Takes note of a call that ended.
        mutating func ended(_ call: NotedCall) {
            count &+= 1
            var call = call
            call.number = count
            if !pending.isEmpty, let attempts = pending.removeValue(forKey: call.id) { call.attempts = attempts }
            if ring.count < RecentCalls.limit {
                ring.append(call)
            } else {
                ring[next] = call
                next = (next + 1) % RecentCalls.limit
            }
        }

        /// The calls that were noted after a number, the newest first.
        func calls(after number: UInt64, limit: Int) -> [NotedCall] {
            var found: [NotedCall] = []
            for step in 0..<ring.count where found.count < limit {
                let call = ring[(next + ring.count - 1 - step) % ring.count]
                guard call.number > number else { break }
                found.append(call)
            }
            return found
        }
    }
#endif
