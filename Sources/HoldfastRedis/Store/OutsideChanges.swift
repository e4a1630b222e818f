// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Redis

    internal import HoldfastStorage
    internal import Synchronization

    /// Removes entries from the memory in front when other processes report that they changed them.
    final class OutsideChanges: Sendable {
        private struct State {
            /// Keys that changed, and are not used until they are forgotten.
            var keys: [StoreKey] = []
            /// What the changed keys begin with; an empty prefix stands for everything.
            var prefixes: Set<[UInt8]> = []
            /// How many suspensions end when the prefixes are forgotten.
            var suspensions = 0
            var isDraining = false
            /// Whether all reports arrive; the memory in front is trusted only then.
            var isListening = false
            var heard = 0
            var lastError: String?

            mutating func resume(forgetting prefix: [UInt8]) {
                suspensions += 1
                if prefixes.count < OutsideChanges.maximumPrefixes { prefixes.insert(prefix) } else { prefixes = [[]] }
            }

            /// What waits, and no longer does; nil if nothing does, so that the drain ends.
            mutating func takeDue() -> State? {
                let due = self
                (keys, prefixes, suspensions) = ([], [], 0)
                isDraining = !due.keys.isEmpty || due.suspensions > 0
                return isDraining ? due : nil
            }
        }

        /// If more keys than this wait, everything counts as changed.
        private static let maximumWaiting = 1_024
        /// The same for prefixes: each entry in memory is compared with all of them.
        private static let maximumPrefixes = 64

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
                switch rest.first {
                case UInt8(ascii: "k"): note(StoreKey(Array(rest.dropFirst())))
                case UInt8(ascii: "p"): forget(prefix: Array(rest.dropFirst()))
                default: forgetAll()
                }
            }
        }

        private func setListening(_ isListening: Bool) {
            let isNew = state.withLock { state in
                defer { state.isListening = isListening }
                return state.isListening != isListening
            }
            guard isNew else { return }
            if isListening {
                // Ends the suspension of the time without reports, of which nothing is known.
                enqueue { $0.resume(forgetting: []) }
            } else {
                tier.suspendUpperTier()
            }
        }

        private func note(_ key: StoreKey) {
            if state.withLock({ $0.keys.count >= OutsideChanges.maximumWaiting }) { return forgetAll() }
            // From here on no lookup uses the copy, however long it takes.
            tier.beginExternalChange(of: key)
            enqueue { $0.keys.append(key) }
        }

        /// Everything may have changed.
        func forgetAll() { forget(prefix: []) }

        private func forget(prefix: [UInt8]) {
            // From here on no lookup uses a copy, however long it takes.
            tier.suspendUpperTier()
            enqueue { $0.resume(forgetting: prefix) }
        }

        private func enqueue(_ add: (inout State) -> Void) {
            let starts = state.withLock { state in
                add(&state)
                defer { state.isDraining = true }
                return !state.isDraining
            }
            if starts { Task { await drain() } }
        }

        private func drain() async {
            while let due = state.withLock({ $0.takeDue() }) {
                if due.suspensions > 0 { await tier.resumeUpperTier(due.suspensions, forgetting: due.prefixes) }
                for key in due.keys { await tier.endExternalChange(of: key) }
            }
        }
    }
#endif
