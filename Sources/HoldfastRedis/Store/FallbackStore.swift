// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Redis

    internal import HoldfastStorage
    internal import Synchronization

    /// A shared store that uses this process's own memory while the server cannot be reached.
    ///
    /// No lookup, write or invalidation fails for lack of the server. What is invalidated or purged in the meantime is done on
    /// the server before its entries are used again, and the memory is then emptied.
    final class FallbackStore: CacheStore {
        /// A change that the server still has to make, and the secret under which it was named.
        private struct Debt: Sendable {
            enum Change: Sendable {
                case key(StoreKey)
                case purge(PurgeSelection)
            }

            let number: UInt64
            let change: Change
            let secret: [UInt8]
        }

        /// The result of asking the server.
        private enum Reach<Outcome: Sendable>: Sendable {
            case done(Outcome)
            /// The server cannot be used at the moment; memory is used instead.
            case away(StoreError)
            /// The server refuses this one request permanently, and nothing else.
            case refused(StoreError)

            var outcome: Outcome? { if case .done(let outcome) = self { outcome } else { nil } }

            /// What the server did; throws if it did nothing.
            func get() throws(StoreError) -> Outcome {
                switch self {
                case .done(let outcome): return outcome
                case .away(let error), .refused(let error): throw error
                }
            }
        }

        private struct State {
            var isAway = false
            /// Whether memory got an entry since the server was lost.
            var hasStoodIn = false
            var isRecovering = false
            var nextDebt: UInt64 = 0
            var debts: [Debt] = []
            /// Makes the pending changes.
            var payment: Task<Result<Void, StoreError>, Never>?
            /// How often the server was lost.
            var losses = 0
        }

        /// If there are more, everything is purged instead.
        private static let maximumDebts = 1_024
        /// The first bytes of cursors: where their list began.
        private static let (serverMark, memoryMark) = (UInt8(ascii: "s"), UInt8(ascii: "m"))

        let shared: SharedEntries
        let memory: MemoryStore
        private let state = Mutex(State())

        /// - Parameter memory: the most bytes to hold while the server cannot be reached.
        init(_ shared: SharedEntries, memory: Int) {
            self.shared = shared
            self.memory = MemoryStore(capacity: memory)
        }

        var isAway: Bool { state.withLock { $0.isAway } }
        var losses: Int { state.withLock { $0.losses } }

        var secret: [UInt8] { shared.secret }

        func peek(_ key: StoreKey, now: StoreInstant) -> [StoredEntry]? { nil }

        func entries(for key: StoreKey, now: StoreInstant) async throws(StoreError) -> [StoredEntry] {
            let found = try await reaching { () async throws(StoreError) in try await shared.entries(for: key, now: now)
            }
            switch found {
            case .done(let entries): return entries
            case .refused: return []
            case .away: return try await memory.entries(for: key, now: now)
            }
        }

        func body(of entry: StoredEntry) async throws(StoreError) -> any StoredBody {
            if isOurs(entry) { return try await memory.body(of: entry) }
            let body = try await reaching { () async throws(StoreError) in try await shared.body(of: entry) }
            guard let body = body.outcome else { throw BodyUpload.lost }
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
            switch writer {
            case .done(let writer):
                return PayingWriter(writer) { [self] () async throws(StoreError) in try await pay() }
            // Others cannot invalidate what memory holds, so it is used only while the server cannot be reached.
            case .refused(let error): throw error
            case .away where memory.statistics.capacity == 0:
                throw StoreError(.temporarilyUnavailable, "Redis cannot be used at the moment. It is tried again soon.")
            case .away: break
            }
            let standIn = try await memory.write(
                key,
                variant: variant,
                description: description,
                expectedLength: expectedLength,
                now: now
            )
            // If the server is back by now, memory was emptied before this entry began, and would keep it for the next loss.
            let isAway = state.withLock { state in
                if state.isAway { state.hasStoodIn = true }
                return state.isAway
            }
            guard isAway else {
                standIn.abandon()
                throw StoreError(.temporarilyUnavailable, "Redis has just come back. Store the response again.")
            }
            return standIn
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
            return try changed.get()
        }

        func remove(_ entry: StoredEntry) async throws(StoreError) {
            if isOurs(entry) { return try await memory.remove(entry) }
            try await change(.key(entry.key)) { () async throws(StoreError) in
                try await self.shared.remove(entry)
            }
        }

        func invalidate(_ key: StoreKey) async throws(StoreError) {
            try await memory.invalidate(key)
            try await change(.key(key)) { () async throws(StoreError) in
                try await self.shared.invalidate(key)
            }
        }

        @discardableResult
        func purge(_ selection: PurgeSelection, now: StoreInstant) async throws(StoreError) -> Int? {
            let held = try await memory.purge(selection, now: now)
            let count = try await change(.purge(selection)) { () async throws(StoreError) in
                try await self.shared.purge(selection, now: now)
            }
            if let count { return count.map { $0 + (held ?? 0) } }
            if state.withLock({ !$0.debts.isEmpty }) {
                throw StoreError(
                    .temporarilyUnavailable,
                    "Redis cannot be reached. The purge is done there before it is used again."
                )
            }
            return nil
        }

        /// Changes what is shared; if the server cannot do it now, it is done before anything else is asked of it.
        @discardableResult
        private func change<Outcome: Sendable>(
            _ change: Debt.Change,
            by step: @escaping @Sendable () async throws(StoreError) -> Outcome
        ) async throws(StoreError) -> Outcome? {
            // In a task of its own: others must not find what a caller that has left wanted gone.
            let result = await Task { () -> Result<Reach<Outcome>, StoreError> in
                do throws(StoreError) { return .success(try await reaching(step)) } catch { return .failure(error) }
            }.value
            let outcome: Reach<Outcome>
            do throws(StoreError) {
                outcome = try result.get()
            } catch {
                if error.code != .closed { owe(change) }
                throw error
            }
            switch outcome {
            case .done(let outcome): return outcome
            case .away(let error):
                owe(change)
                // A permission that only this change needs may be missing.
                if error.code == .badConfiguration {
                    _ = try await reaching(waits: true) { () async throws(StoreError) in }
                }
            case .refused:
                owe(change)
                // If this one thing cannot be removed, paying removes everything.
                _ = try await reaching(waits: true) { () async throws(StoreError) in }
            }
            return nil
        }

        func list(after cursor: StoreCursor?, limit: Int, now: StoreInstant) async throws(StoreError) -> StorePage {
            // A list that began in memory ends there: what the server has is ordered by other places.
            if let cursor, cursor.bytes.first == FallbackStore.memoryMark {
                return try await listMemory(after: StoreCursor(Array(cursor.bytes.dropFirst())), limit: limit, now: now)
            }
            let place = cursor.map { StoreCursor(Array($0.bytes.dropFirst())) }
            let listed = try await reaching { () async throws(StoreError) in
                try await shared.list(after: place, limit: limit, now: now)
            }
            if cursor == nil, case .away = listed { return try await listMemory(after: nil, limit: limit, now: now) }
            return FallbackStore.marked(try listed.get(), with: FallbackStore.serverMark)
        }

        private func listMemory(
            after cursor: StoreCursor?,
            limit: Int,
            now: StoreInstant
        ) async throws(StoreError) -> StorePage {
            let page = try await memory.list(after: cursor, limit: limit, now: now)
            return FallbackStore.marked(page, with: FallbackStore.memoryMark)
        }

        private static func marked(_ page: StorePage, with mark: UInt8) -> StorePage {
            StorePage(listed: page.listed, next: page.next.map { StoreCursor([mark] + $0.bytes) })
        }

        @discardableResult
        func setPinned(_ pinned: Bool, _ entry: StoredEntry) async throws(StoreError) -> Bool {
            if isOurs(entry) { return try await memory.setPinned(pinned, entry) }
            return try await reaching { () async throws(StoreError) in try await shared.setPinned(pinned, entry) }.get()
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

        /// Asks the server to do something, after it has made all pending changes.
        ///
        /// - Parameter waits: whether to wait until another task has made them.
        private func reaching<Outcome: Sendable>(
            waits: Bool = false,
            _ step: () async throws(StoreError) -> Outcome
        ) async throws(StoreError) -> Reach<Outcome> {
            do throws(StoreError) {
                try await shared.open()
                // A server that answers lookups and refuses changes is not back.
                if isAway { try await shared.checkWrites() }
                try await pay(waits: waits)
                let outcome = try await step()
                await noteBack()
                return .done(outcome)
            } catch {
                switch error.code {
                case .closed, .cancelled, .tooLarge, .superseded, .abandoned: throw error
                case .noSpace:
                    shared.space.note(error)
                    throw error
                case .corrupt:
                    shared.space.note(error)
                    return .refused(error)
                default:
                    noteLost(error)
                    return .away(error)
                }
            }
        }

        /// Makes the pending changes on the server: one task for all, since hundreds that did the same would keep it busy for as long.
        ///
        /// - Parameter waits: whether to wait for a task that has begun.
        /// - Throws: `.temporarilyUnavailable` to those who do not wait, which go on as while the server is away.
        private func pay(waits: Bool = false) async throws(StoreError) {
            typealias Payment = Task<Result<Void, StoreError>, Never>
            let (payment, isFirst) = state.withLock { state -> (Payment?, Bool) in
                if state.debts.isEmpty { return (nil, false) }
                if let payment = state.payment { return (payment, false) }
                let payment = Payment { [self] in
                    defer { self.state.withLock { $0.payment = nil } }
                    do throws(StoreError) { return .success(try await payAll()) } catch { return .failure(error) }
                }
                state.payment = payment
                return (payment, true)
            }
            guard let payment else { return }
            guard isFirst || waits else {
                throw StoreError(
                    .temporarilyUnavailable,
                    "What was invalidated while Redis could not be used is being removed there. It is used again soon."
                )
            }
            try await payment.value.get()
        }

        private func payAll() async throws(StoreError) {
            while let debt = state.withLock({ $0.debts.first }) {
                do throws(StoreError) {
                    if debt.secret != shared.secret {
                        try await shared.renew()
                    } else {
                        switch debt.change {
                        case .key(let key): try await shared.invalidate(key)
                        case .purge(let selection): try await shared.purge(selection, now: .distantFuture)
                        }
                    }
                } catch {
                    guard error.code == .corrupt || error.code == .badConfiguration else { throw error }
                    // It would be refused again; no entries are better than one that should be gone.
                    shared.space.note(error)
                    try await shared.renew()
                }
                state.withLock { state in
                    if state.debts.first?.number == debt.number { state.debts.removeFirst() }
                }
            }
        }

        private func owe(_ change: Debt.Change) {
            let secret = shared.secret
            state.withLock { state in
                let isTooMuch = state.debts.count >= FallbackStore.maximumDebts
                state.nextDebt += 1
                let debt = Debt(number: state.nextDebt, change: isTooMuch ? .purge(.all) : change, secret: secret)
                state.debts = isTooMuch ? [debt] : state.debts + [debt]
            }
        }

        /// The server cannot be used; from here on it is tried again from time to time.
        func noteLost(_ error: StoreError) {
            shared.space.note(error)
            let starts = state.withLock { state in
                if !state.isAway { state.losses += 1 }
                defer { (state.isAway, state.isRecovering) = (true, true) }
                return !state.isRecovering
            }
            guard starts else { return }
            Task { [weak self] in
                var rest = Duration.milliseconds(50)
                while let store = self, await store.isStillAway() {
                    try? await Task.sleep(for: rest)
                    rest = min(rest * 2, .seconds(1))
                }
            }
        }

        private func isStillAway() async -> Bool {
            let outcome = try? await reaching { () async throws(StoreError) in try await shared.agree() }
            if shared.isClosed.load(ordering: .acquiring) { return false }
            if case .done? = outcome {
                return state.withLock { state in
                    state.isRecovering = state.isAway
                    return state.isAway
                }
            }
            return true
        }

        private func noteBack() async {
            let (isNew, hasStoodIn) = state.withLock { state in
                defer { (state.isAway, state.hasStoodIn) = (false, false) }
                return (state.isAway, state.hasStoodIn)
            }
            guard isNew else { return }
            _ = try? await memory.purge(.all, now: .distantFuture)
            // Copies of what memory held are not the server's.
            if hasStoodIn { shared.space.dropCopies() }
        }
    }

    /// A writer of the server's, whose entry appears only after all pending changes were made there.
    private final class PayingWriter: EntryWriter {
        private let writer: any EntryWriter
        private let pay: @Sendable () async throws(StoreError) -> Void

        init(_ writer: any EntryWriter, pay: @escaping @Sendable () async throws(StoreError) -> Void) {
            self.writer = writer
            self.pay = pay
        }

        func append(_ bytes: ByteChunk) async throws(StoreError) { try await writer.append(bytes) }

        @discardableResult
        func commit(_ description: EntryDescription?, now: StoreInstant) async throws(StoreError) -> StoredEntry {
            do throws(StoreError) {
                try await pay()
            } catch {
                writer.abandon()
                throw error
            }
            return try await writer.commit(description, now: now)
        }

        func abandon() { writer.abandon() }

        func follow() -> any StoredBody { writer.follow() }
    }
#endif
