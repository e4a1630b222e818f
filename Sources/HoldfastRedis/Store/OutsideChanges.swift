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
            var prefixes: [[UInt8]] = []
            var isForgetting = false
            /// Whether all reports arrive; the memory in front is trusted only then.
            var isListening = false
            var heard = 0
            var lastError: String?
        }

        /// If more than this waits, everything counts as changed.
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

        private func forget(prefix: [UInt8]) {
            if state.withLock({ $0.prefixes.count >= OutsideChanges.maximumPrefixes }) { return forgetAll() }
            // From here on no lookup uses a copy, however long it takes.
            tier.suspendUpperTier()
            let starts = state.withLock { state in
                state.prefixes.append(prefix)
                defer { state.isForgetting = true }
                return !state.isForgetting
            }
            if starts { Task { await forgetPrefixes() } }
        }

        private func forgetPrefixes() async {
            while true {
                let prefixes = state.withLock { state in
                    defer { state.prefixes = [] }
                    if state.prefixes.isEmpty { state.isForgetting = false }
                    return state.prefixes
                }
                if prefixes.isEmpty { return }
                await tier.endExternalPurges(of: prefixes)
            }
        }

        /// Everything may have changed.
        func forgetAll() {
            tier.suspendUpperTier()
            Task { [tier] in await tier.resumeUpperTier() }
        }
    }
#endif
