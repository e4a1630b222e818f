// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastSemantics
internal import HoldfastStorage
private import Synchronization

/// The one place that changes a store.
///
/// What a response may leave behind is ``Admission``'s to say. Here it is held to the order of things: a response whose target
/// was invalidated while it was under way is not written, and neither is one where a newer one has been (RFC 9111 §4, §4.4).
final class CacheWriter: Sendable {
    let order: ExchangeOrder
    let invalidations = InvalidationLog()
    private let store: any CacheStore
    /// Invalidations that nobody waits for, by target and number; nil until the task is known.
    private let pending = Mutex<[TargetURI: [UInt64: Task<Void, Never>?]]>([:])
    private let pendingCount = Atomic<Int>(0)
    private let pendingNumber = Atomic<UInt64>(0)

    init(_ store: any CacheStore) {
        self.store = store
        order = ExchangeOrder(secret: store.secret)
    }

    // MARK: Responses

    /// The generation of a target when its exchange began, as look-ups and responses carry it.
    struct Generation: Sendable {
        /// How often the target had been invalidated by then.
        var mark: InvalidationLog.Mark
        /// The exchange, once one is to be made.
        var ticket: ExchangeOrder.Ticket?
    }

    /// The generation of a target now.
    func generation(of target: TargetURI) -> Generation {
        Generation(mark: invalidations.mark(of: target))
    }

    /// Whether nothing happened to a target since its exchange began that forbids to write what came.
    ///
    /// - Parameter answersQueries: whether the response answers for other queries of its path (No-Vary-Search), so that an
    ///   invalidation of any of them counts.
    func holds(_ generation: Generation, for target: TargetURI, answersQueries: Bool = false) -> Bool {
        guard invalidations.mark(of: target) == generation.mark else { return false }
        guard answersQueries, let ticket = generation.ticket else { return true }
        return invalidations.pathMark(of: target) == ticket.pathMark
    }

    /// Begins an exchange, of which the generation then knows the order.
    func begin(_ generation: inout Generation, for target: TargetURI) {
        guard generation.ticket == nil else { return }
        generation.ticket = order.begin(target, pathMark: invalidations.pathMark(of: target))
    }

    /// Begins an entry.
    func open(
        _ key: StoreKey,
        variant: StoreKey,
        description: EntryDescription,
        expectedLength: Int?,
        now: Timestamp
    ) async throws(StoreError) -> any EntryWriter {
        try await store.write(
            key,
            variant: variant,
            description: description,
            expectedLength: expectedLength,
            now: StoreInstant(now)
        )
    }

    /// Writes a whole entry that is no response, so that nothing overtakes it.
    func put(
        _ key: StoreKey,
        variant: StoreKey,
        description: EntryDescription,
        body: ByteChunk,
        now: Timestamp
    ) async throws(StoreError) {
        try await store.put(key, variant: variant, description: description, body: body, now: StoreInstant(now))
    }

    /// Makes an entry visible, unless one that was asked for later is there.
    ///
    /// - Parameters:
    ///   - writer: of the entry.
    ///   - description: in the place of the one it began with; nil keeps that.
    ///   - response: the target whose response it is, when its exchange began, and its place in the order of things; nil for what
    ///     is no response.
    ///   - now: when it is committed.
    /// - Returns: nil where the entry was overtaken. Its writer is left alone then, since readers may follow it still.
    func commit(
        _ writer: any EntryWriter,
        description: EntryDescription?,
        as response: WrittenResponse?,
        now: Timestamp
    ) async throws(StoreError) -> StoredEntry? {
        guard let response else { return try await writer.commit(description, now: StoreInstant(now)) }
        guard holds(response), order.isNewest(response.claim, for: response.target) else { return nil }
        let entry = try await writer.commit(description, now: StoreInstant(now))
        if holds(response), order.isNewest(response.claim, for: response.target) { return entry }
        // Both were on their way at once, and nobody knows which of them came last.
        try await remove(entry)
        return nil
    }

    /// What a response that is written must keep to.
    struct WrittenResponse: Sendable {
        let target: TargetURI
        let generation: Generation
        let claim: ExchangeOrder.Claim
        /// Whether it answers for other queries of its path too (No-Vary-Search).
        let answersQueries: Bool
    }

    /// The store itself watches for invalidations of the entry's own key, and of no other query.
    private func holds(_ response: WrittenResponse) -> Bool {
        !response.answersQueries || holds(response.generation, for: response.target, answersQueries: true)
    }

    /// Gives an entry another description; nil where it is no longer there, or something newer has been written.
    func freshen(
        _ entry: StoredEntry,
        with description: EntryDescription,
        claim: ExchangeOrder.Claim?,
        for target: TargetURI?,
        now: Timestamp
    ) async throws(StoreError) -> StoredEntry? {
        if let claim, let target, !order.enter(claim, for: target) { return nil }
        return try await store.replaceDescription(of: entry, with: description, now: StoreInstant(now))
    }

    /// Removes an entry.
    ///
    /// - Parameters:
    ///   - claim: of the response that says that it no longer holds: where something newer has been written it says nothing of
    ///     that, and what was asked for earlier is not written any more. Nil where no response says so.
    ///   - target: of that response.
    func remove(
        _ entry: StoredEntry,
        claim: ExchangeOrder.Claim? = nil,
        for target: TargetURI? = nil
    ) async throws(StoreError) {
        if let claim, let target, !order.enter(claim, for: target) { return }
        try await store.remove(entry)
    }

    // MARK: Invalidation

    /// Removes what is stored under keys; the caller has told ``invalidations`` before.
    func invalidate(_ keys: [CacheKey]) async throws(StoreError) {
        for key in keys { try await store.invalidate(StoreKey(key.framed)) }
    }

    /// Removes all that a selection names; the caller has told ``invalidations`` before.
    @discardableResult
    func purge(_ selection: PurgeSelection, now: Timestamp) async throws(StoreError) -> Int? {
        try await store.purge(selection, now: StoreInstant(now))
    }

    func setPinned(_ pinned: Bool, _ entry: StoredEntry) async throws(StoreError) -> Bool {
        try await store.setPinned(pinned, entry)
    }

    /// Runs an invalidation that nobody waits for; look-ups of the target wait until it is done.
    ///
    /// - Parameters:
    ///   - target: what will be invalidated.
    ///   - background: what runs `work`.
    ///   - work: invalidates.
    func invalidate(
        _ target: TargetURI,
        in background: BackgroundTasks,
        by work: @escaping @Sendable () async -> Void
    ) {
        let number = pendingNumber.add(1, ordering: .relaxed).newValue
        pending.withLock { $0[target, default: [:]][number] = .some(nil) }
        pendingCount.add(1, ordering: .releasing)
        let task = background.spawn { [self] in
            await work()
            pending.withLock { pending in
                pending[target]?[number] = nil
                if pending[target]?.isEmpty ?? false { pending[target] = nil }
            }
            pendingCount.subtract(1, ordering: .releasing)
        }
        pending.withLock { pending in
            if pending[target]?[number] != nil { pending[target]?[number] = .some(task) }
        }
    }

    /// Whether invalidations are under way that nobody waits for.
    var hasPendingInvalidations: Bool { pendingCount.load(ordering: .acquiring) > 0 }

    /// Waits until those of a target are done, and of the other queries of its path: what is stored for one may answer another.
    func waitForInvalidations(of target: TargetURI) async {
        let tasks = pending.withLock { pending in
            pending.filter { $0.key.path == target.path && $0.key.isSameOrigin(as: target) }
                .flatMap { $0.value.values.compactMap(\.self) }
        }
        for task in tasks { await task.value }
    }
}
