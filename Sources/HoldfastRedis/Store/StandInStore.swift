// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Redis

    internal import HoldfastStorage
    internal import Synchronization

    /// A shared store with memory of this process's own in its place while it cannot be reached.
    ///
    /// No look-up, write or invalidation fails for want of the server. What is invalidated or purged meanwhile is made up before
    /// the server is believed again, and what memory held is forgotten then.
    final class StandInStore: CacheStore {
        /// What the server must still be told.
        private enum Debt: Sendable {
            case key(StoreKey)
            case purge(PurgeSelection)
        }

        private struct State {
            var isAway = false
            var debts: [Debt] = []
            /// How often the server was lost.
            var losses = 0
        }

        /// More than this is made up by purging everything.
        private static let maximumDebts = 1_024

        let shared: SharedEntries
        let memory: MemoryStore
        private let state = Mutex(State())
        private let onChange: @Sendable (_ isAway: Bool) -> Void

        /// - Parameters:
        ///   - memory: bytes that may be held while the server is away.
        ///   - onChange: is told when the server is lost, and when it is back.
        init(_ shared: SharedEntries, memory: Int, onChange: @escaping @Sendable (_ isAway: Bool) -> Void = { _ in }) {
            self.shared = shared
            self.memory = MemoryStore(capacity: memory)
            self.onChange = onChange
        }

        var isAway: Bool { state.withLock { $0.isAway } }
        var losses: Int { state.withLock { $0.losses } }

        var secret: [UInt8] { shared.secret }

        func peek(_ key: StoreKey, now: StoreInstant) -> [StoredEntry]? { nil }

        func entries(for key: StoreKey, now: StoreInstant) async throws(StoreError) -> [StoredEntry] {
            let found = try await reaching { () async throws(StoreError) in try await shared.entries(for: key, now: now)
            }
            if let found { return found }
            return try await memory.entries(for: key, now: now)
        }

        func body(of entry: StoredEntry) async throws(StoreError) -> any StoredBody {
            if isOurs(entry) { return try await memory.body(of: entry) }
            let body = try await reaching { () async throws(StoreError) in try await shared.body(of: entry) }
            guard let body else { throw BodyUpload.lost }
            return body
        }

        func write(
            _ key: StoreKey,
            variant: StoreKey,
            description: EntryDescription,
            expectedLength: Int?,
            now: StoreInstant
        ) async throws(StoreError) -> any EntryWriter {
            let writer = try await reaching { () async throws(StoreError) in
                try await shared.write(
                    key,
                    variant: variant,
                    description: description,
                    expectedLength: expectedLength,
                    now: now
                )
            }
            if let writer { return writer }
            return try await memory.write(
                key,
                variant: variant,
                description: description,
                expectedLength: expectedLength,
                now: now
            )
        }

        @discardableResult
        func replaceDescription(
            of entry: StoredEntry,
            with description: EntryDescription,
            now: StoreInstant
        ) async throws(StoreError) -> StoredEntry? {
            if isOurs(entry) { return try await memory.replaceDescription(of: entry, with: description, now: now) }
            let changed = try await reaching { () async throws(StoreError) in
                try await shared.replaceDescription(of: entry, with: description, now: now)
            }
            return changed ?? nil
        }

        func remove(_ entry: StoredEntry) async throws(StoreError) {
            if isOurs(entry) { return try await memory.remove(entry) }
            let isDone: Void? = try await reaching { () async throws(StoreError) in try await shared.remove(entry) }
            if isDone == nil { owe(.key(entry.key)) }
        }

        func invalidate(_ key: StoreKey) async throws(StoreError) {
            try await memory.invalidate(key)
            let isDone: Void? = try await reaching { () async throws(StoreError) in try await shared.invalidate(key) }
            if isDone == nil { owe(.key(key)) }
        }

        @discardableResult
        func purge(_ selection: PurgeSelection, now: StoreInstant) async throws(StoreError) -> Int? {
            let held = try await memory.purge(selection, now: now)
            let count = try await reaching { () async throws(StoreError) in try await shared.purge(selection, now: now)
            }
            guard let count else {
                owe(.purge(selection))
                throw StoreError(.resting, "Redis cannot be reached; the purge is made up before it is used again.")
            }
            return count.map { $0 + (held ?? 0) }
        }

        func list(after cursor: StoreCursor?, limit: Int, now: StoreInstant) async throws(StoreError) -> StorePage {
            let page = try await reaching { () async throws(StoreError) in
                try await shared.list(after: cursor, limit: limit, now: now)
            }
            if let page { return page }
            return try await memory.list(after: cursor, limit: limit, now: now)
        }

        @discardableResult
        func setPinned(_ pinned: Bool, _ entry: StoredEntry) async throws(StoreError) -> Bool {
            if isOurs(entry) { return try await memory.setPinned(pinned, entry) }
            return try await reaching { () async throws(StoreError) in try await shared.setPinned(pinned, entry) }
                ?? false
        }

        var statistics: StoreStatistics {
            var statistics = shared.statistics
            guard isAway else { return statistics }
            let held = memory.statistics
            statistics.entryCount = held.entryCount
            statistics.bytesUsed = held.bytesUsed
            return statistics
        }

        func close() async {
            await shared.close()
            await memory.close()
        }

        private func isOurs(_ entry: StoredEntry) -> Bool {
            entry.version.number < UInt64(SharedEntries.firstVersion)
        }

        // MARK: Coming and going of the server

        /// Has the server do something, once it knows all it must know.
        ///
        /// - Returns: nil where it cannot be reached.
        private func reaching<Outcome>(
            _ step: () async throws(StoreError) -> Outcome
        ) async throws(StoreError) -> Outcome? {
            do throws(StoreError) {
                try await shared.open()
                try await pay()
                let outcome = try await step()
                await noteBack()
                return outcome
            } catch {
                guard error.code == .io || error.code == .resting || error.code == .corrupt else { throw error }
                noteLost()
                return nil
            }
        }

        private func pay() async throws(StoreError) {
            while let debt = state.withLock({ $0.debts.first }) {
                let count = state.withLock { $0.debts.count }
                switch debt {
                case .key(let key): try await shared.invalidate(key)
                case .purge(let selection): try await shared.purge(selection, now: .distantFuture)
                }
                // Others may pay too; what is owed twice does no harm.
                state.withLock { state in
                    if state.debts.count == count, !state.debts.isEmpty { state.debts.removeFirst() }
                }
            }
        }

        private func owe(_ debt: Debt) {
            state.withLock { state in
                if state.debts.count >= StandInStore.maximumDebts { state.debts = [.purge(.all)] }
                state.debts.append(debt)
            }
        }

        private func noteLost() {
            let isNew = state.withLock { state in
                defer { state.isAway = true }
                if !state.isAway { state.losses += 1 }
                return !state.isAway
            }
            if isNew { onChange(true) }
        }

        private func noteBack() async {
            let isNew = state.withLock { state in
                defer { state.isAway = false }
                return state.isAway
            }
            guard isNew else { return }
            _ = try? await memory.purge(.all, now: .distantFuture)
            onChange(false)
        }
    }
#endif
