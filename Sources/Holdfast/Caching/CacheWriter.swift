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

    func setPinned(_ pinned: Bool, entry: StoredEntry) async throws(StoreError) -> Bool {
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

/// In which order the responses of exchanges under way were asked for, so that an older one never replaces a newer one
/// (RFC 9111 §4: the most recent response).
///
/// Known is what came for a target, to be stored or to say that something stored no longer holds, while an exchange for it was under
/// way: what begins later is newer than all of it. So the table has a row for each target with an exchange under way, and none for others.
final class ExchangeOrder: Sendable {
    /// An exchange under way; letting go of it ends it.
    final class Ticket: Sendable {
        let target: TargetURI
        /// How often the path had been invalidated by then, for responses that answer for other queries of it.
        let pathMark: InvalidationLog.PathMark
        private let order: ExchangeOrder

        fileprivate init(_ target: TargetURI, pathMark: InvalidationLog.PathMark, in order: ExchangeOrder) {
            self.target = target
            self.pathMark = pathMark
            self.order = order
        }

        deinit { order.end(target) }
    }

    /// A response that is about to be written, or to be written down anew.
    struct Claim: Sendable {
        /// The place of the request that got it (``SentExchange/order``).
        let order: HybridTimestamp
        let key: StoreKey
        let nominated: NominatedFields
        /// The keys by which whoever asked for it looks things up.
        let readable: [StoreKey]
        /// The fields of that request, from which Vary nominates.
        let fields: HeaderFields
    }

    private struct Written: Sendable {
        let order: HybridTimestamp
        let key: StoreKey
        let nominated: NominatedFields
    }

    private struct Row: Sendable {
        var exchanges = 0
        var written: [Written] = []
        /// The latest that was forgotten for want of room: what is older counts as overtaken.
        var forgotten: HybridTimestamp?
    }

    /// More variants than this are seldom written while one exchange is under way.
    private static let mostWritten = 64

    private let secret: @Sendable () -> [UInt8]
    private let rows = Mutex<[TargetURI: Row]>([:])

    /// - Parameter secret: the key for the digests of nominated credentials; asked for each time, since a shared store that lost its own
    ///   takes another.
    init(secret: @autoclosure @escaping @Sendable () -> [UInt8]) {
        self.secret = secret
    }

    /// An exchange for `target` is about to begin.
    func begin(_ target: TargetURI, pathMark: InvalidationLog.PathMark) -> Ticket {
        rows.withLock { $0[target, default: Row()].exchanges += 1 }
        return Ticket(target, pathMark: pathMark, in: self)
    }

    private func end(_ target: TargetURI) {
        rows.withLock { rows in
            guard let index = rows.index(forKey: target) else { return }
            rows.values[index].exchanges -= 1
            if rows.values[index].exchanges == 0 { rows.remove(at: index) }
        }
    }

    /// When the newest response that came for a target meanwhile, and answers a request, was asked for; nil where none did.
    ///
    /// - Parameters:
    ///   - keys: by which the request is looked up.
    ///   - fields: of the request.
    func newest(
        for target: TargetURI,
        under keys: @autoclosure () -> [StoreKey],
        matching fields: HeaderFields
    ) -> HybridTimestamp? {
        rows.withLock { rows in
            guard let written = rows[target]?.written, !written.isEmpty else { return nil }
            let keys = keys()
            return
                written
                .filter { keys.contains($0.key) && $0.nominated.matches(fields, secret: secret()) }
                .map(\.order).max()
        }
    }

    /// Whether no response that was asked for later has come in the place of this one.
    func isNewest(_ claim: Claim, for target: TargetURI) -> Bool {
        rows.withLock { rows in rows[target].map { isNewest(claim, in: $0) } ?? true }
    }

    /// Notes that a response has come, unless one that was asked for later has: whatever becomes of it, no older one is written.
    ///
    /// A later one may come until this one is written, so ask ``isNewest(_:for:)`` before and after that.
    ///
    /// - Returns: whether it may be written.
    func enter(_ claim: Claim, for target: TargetURI) -> Bool {
        rows.withLock { rows in
            guard let index = rows.index(forKey: target) else { return true }
            guard isNewest(claim, in: rows.values[index]) else { return false }
            rows.values[index].written.removeAll { $0.key == claim.key && $0.nominated == claim.nominated }
            rows.values[index].written.append(
                Written(order: claim.order, key: claim.key, nominated: claim.nominated)
            )
            if rows.values[index].written.count > ExchangeOrder.mostWritten {
                let oldest = rows.values[index].written.removeFirst()
                rows.values[index].forgotten = max(rows.values[index].forgotten ?? oldest.order, oldest.order)
            }
            return true
        }
    }

    private func isNewest(_ claim: Claim, in row: Row) -> Bool {
        if let forgotten = row.forgotten, claim.order < forgotten { return false }
        return !row.written.contains { written in
            written.order > claim.order && claim.readable.contains(written.key)
                && written.nominated.matches(claim.fields, secret: secret())
        }
    }

    /// How many targets have an exchange under way.
    var count: Int { rows.withLock { $0.count } }
}

/// Counts invalidations, so that a response whose request went out before one is not stored after it.
///
/// Once the head is there the store itself keeps watch (see ``CacheStore``); this covers the time before. Targets share a
/// fixed number of counters: two that fall together cost a response that could have been stored, and never the opposite.
final class InvalidationLog: Sendable {
    /// The counts at one moment.
    struct Mark: Sendable, Hashable {
        fileprivate let ofTarget: UInt64
        fileprivate let ofAll: UInt64
    }

    /// The count of a path, whatever the query, at one moment.
    struct PathMark: Sendable, Hashable {
        fileprivate let count: UInt64
    }

    private struct Counts {
        var ofTargets = [UInt64](repeating: 0, count: 1_024)
        var ofPaths = [UInt64](repeating: 0, count: 1_024)
        var ofAll: UInt64 = 0
    }

    private let counts = Mutex(Counts())

    /// The counts for a target now.
    func mark(of target: TargetURI) -> Mark {
        let place = InvalidationLog.place(of: target)
        return counts.withLock { Mark(ofTarget: $0.ofTargets[place], ofAll: $0.ofAll) }
    }

    /// The count for the path of a target now.
    func pathMark(of target: TargetURI) -> PathMark {
        let place = InvalidationLog.pathPlace(of: target)
        return counts.withLock { PathMark(count: $0.ofPaths[place]) }
    }

    /// A mark of `target` as it must be found if nothing but `own` was invalidated since: what a request makes invalid was
    /// stored before its response.
    func mark(_ mark: Mark, of target: TargetURI, after own: [TargetURI]) -> Mark {
        let place = InvalidationLog.place(of: target)
        let count = own.count { InvalidationLog.place(of: $0) == place }
        return Mark(ofTarget: mark.ofTarget &+ UInt64(count), ofAll: mark.ofAll)
    }

    /// A target is being invalidated.
    func note(_ target: TargetURI) {
        let (place, pathPlace) = (InvalidationLog.place(of: target), InvalidationLog.pathPlace(of: target))
        counts.withLock { counts in
            counts.ofTargets[place] &+= 1
            counts.ofPaths[pathPlace] &+= 1
        }
    }

    /// More than one target is being invalidated.
    func noteAll() {
        counts.withLock { $0.ofAll &+= 1 }
    }

    private static func place(of target: TargetURI) -> Int {
        Int(UInt(bitPattern: target.canonical.hashValue) % 1_024)
    }

    private static func pathPlace(of target: TargetURI) -> Int {
        var hasher = Hasher()
        var text = target.canonical
        text.withUTF8 { bytes in
            let end = bytes.firstIndex(of: UInt8(ascii: "?")) ?? bytes.count
            hasher.combine(bytes: UnsafeRawBufferPointer(UnsafeBufferPointer(rebasing: bytes[..<end])))
        }
        return Int(UInt(bitPattern: hasher.finalize()) % 1_024)
    }
}
