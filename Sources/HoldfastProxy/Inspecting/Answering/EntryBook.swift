// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import Holdfast
    internal import HoldfastStorage
    private import Synchronization

    /// The entries that a page has been shown, by the short names it was given for them; those that were shown longest ago are forgotten.
    final class EntryBook: Sendable {
        private struct State {
            var entries: [String: CacheEntryInfo] = [:]
            var order: [String] = []
            var oldest = 0
        }

        private let state = Mutex(State())
        private let limit: Int

        /// An empty book.
        ///
        /// - Parameter limit: how many entries are remembered; 1 at least.
        init(limit: Int = 2048) {
            self.limit = max(1, limit)
        }

        /// The name of an entry: the same for each of its versions, and telling nothing of it.
        func name(of info: CacheEntryInfo) -> String {
            var hasher = Hasher()
            hasher.combine(info.key)
            hasher.combine(info.variant)
            let digits = String(UInt(bitPattern: hasher.finalize()), radix: 16)
            let name = String(repeating: "0", count: max(0, 16 - digits.count)) + digits
            state.withLock { state in
                if state.entries.updateValue(info, forKey: name) != nil { return }
                if state.order.count < limit {
                    state.order.append(name)
                } else {
                    state.entries[state.order[state.oldest]] = nil
                    state.order[state.oldest] = name
                    state.oldest = (state.oldest + 1) % limit
                }
            }
            return name
        }

        /// The entry of a name; nil where it was never given or is forgotten.
        func entry(_ name: String) -> CacheEntryInfo? {
            state.withLock { $0.entries[name] }
        }

        /// How many entries are known.
        var count: Int { state.withLock { $0.entries.count } }
    }
#endif
