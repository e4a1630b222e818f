// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Redis

    internal import HoldfastStorage
    internal import Synchronization

    /// Removes entries from the memory in front when other processes report that they changed them.
    final class OutsideChanges: Sendable {
        private struct State {
            var keys: [StoreKey] = []
            var isDraining = false
            /// Whether all reports arrive; the memory in front is trusted only then.
            var isListening = false
            var heard = 0
            var lastError: String?
        }

        /// If more than this waits, everything counts as changed.
        private static let maximumWaiting = 1_024

        private let tier: TieredStore
        private let origin: [UInt8]
        private let state = Mutex(State())

        /// Not trusted until a subscription reports that it listens.
        init(_ tier: TieredStore, origin: String) {
            self.tier = tier
            self.origin = Array(origin.utf8)
            tier.suspendUpperTier()
        }

        /// How many changes of others were received.
        var heard: Int { state.withLock { $0.heard } }
        var lastError: String? { state.withLock { $0.lastError } }
        var isListening: Bool { state.withLock { $0.isListening } }

        func receive(_ event: RedisSubscription.Event) {
            switch event {
            case .listening: setListening(true)
            case .lost: setListening(false)
            case .failed(let message): state.withLock { $0.lastError = message }
            case .message(_, let payload):
                guard payload.count > origin.count, !payload.starts(with: origin) else { return }
                state.withLock { $0.heard += 1 }
                let rest = payload.dropFirst(origin.count)
                if rest.first == UInt8(ascii: "k") { note(StoreKey(Array(rest.dropFirst()))) } else { forgetAll() }
            }
        }

        private func setListening(_ isListening: Bool) {
            let isNew = state.withLock { state in
                defer { state.isListening = isListening }
                return state.isListening != isListening
            }
            guard isNew else { return }
            if isListening {
                Task { [tier] in await tier.resumeUpperTier() }
            } else {
                tier.suspendUpperTier()
            }
        }

        private func note(_ key: StoreKey) {
            if state.withLock({ $0.keys.count >= OutsideChanges.maximumWaiting }) { return forgetAll() }
            // From here on no lookup uses the copy, however long it takes.
            tier.beginExternalChange(of: key)
            let starts = state.withLock { state in
                state.keys.append(key)
                defer { state.isDraining = true }
                return !state.isDraining
            }
            if starts { Task { await drain() } }
        }

        private func drain() async {
            while true {
                let keys = state.withLock { state in
                    defer { state.keys = [] }
                    if state.keys.isEmpty { state.isDraining = false }
                    return state.keys
                }
                if keys.isEmpty { return }
                for key in keys { await tier.endExternalChange(of: key) }
            }
        }

        /// Everything may have changed.
        func forgetAll() {
            tier.suspendUpperTier()
            Task { [tier] in await tier.resumeUpperTier() }
        }
    }
#endif
