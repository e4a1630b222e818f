// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastSemantics
internal import HoldfastStorage
private import Synchronization

/// The only code that changes a store.
///
/// ``Admission`` decides what a response may store. The writer enforces the order: a response is not written if its target was
/// invalidated while it was being fetched, or if there has been a newer one (RFC 9111 §4, §4.4).
final class CacheWriter: Sendable {
    let order: ExchangeOrder
    let invalidations = InvalidationLog()
    private let store: any CacheStore
    /// Invalidations that nobody waits for, by target and number; nil until the task is known.
    private let pending = Mutex<[TargetURI: [UInt64: Task<Void, Never>?]]>([:])
    private let pendingCount = Atomic<Int>(0)
    private let pendingNumber = Atomic<UInt64>(0)
    /// Whether there may be entries whose keys include content: finding them needs a scan, which is skipped while there are none.
    private let contentKeys: Atomic<Bool>
    /// Whether entries that answer several queries are known, or may be from before.
    private let searchVariance: Atomic<Bool>
    /// Whether other processes may write to the store at any time, so that there may be entries of any kind.
    private let isShared: Bool
    /// How often the keys of some routes have come to be made by other rules.
    private let keyChanges = Atomic<UInt64>(0)

    init(_ store: any CacheStore) {
        self.store = store
        order = ExchangeOrder(secret: store.secret)
        let isFilled = store.statistics.entryCount > 0
        contentKeys = Atomic(isFilled)
        searchVariance = Atomic(isFilled)
        isShared = store.fillLeasing != nil
    }

    // MARK: Rules

    /// How often the keys of some routes have come to be made by other rules: a cache of an earlier count must not store.
    var keyEpoch: UInt64 { keyChanges.load(ordering: .acquiring) }

    /// Keys are made by other rules from now on: what is under way by the former ones is not stored.
    func beginKeyEpoch(_ epoch: UInt64) {
        keyChanges.store(epoch, ordering: .releasing)
        invalidations.note(.all)
    }

    // MARK: What kinds of entries there may be

    /// Whether an invalidation has to look for entries whose keys include content.
    var mayHoldContentKeys: Bool { isShared || contentKeys.load(ordering: .acquiring) }

    /// Records that an entry is about to be stored whose key includes content.
    func noteContentKey() {
        contentKeys.store(true, ordering: .releasing)
    }

    /// Whether a lookup looks for what is stored under equivalent queries. What only another process has stored may be missed, and is
    /// then fetched: each hit in memory would have to ask a shared store otherwise.
    var holdsSearchVariance: Bool { searchVariance.load(ordering: .acquiring) }

    /// Whether an invalidation has to look for it.
    var mayHoldSearchVariance: Bool { isShared || holdsSearchVariance }

    /// Records that an entry that answers several queries is about to be stored, or exists.
    func noteSearchVariance() {
        searchVariance.store(true, ordering: .releasing)
    }

    // MARK: Responses

    /// The generation of a target when its exchange began; lookups and responses carry it.
    struct Generation: Sendable {
        /// How often the target had been invalidated at that time.
        var mark: InvalidationLog.Mark
        /// The exchange, if one has begun.
        var ticket: ExchangeOrder.Ticket?
    }

    /// The generation of a target now.
    func generation(of target: TargetURI) -> Generation {
        Generation(mark: invalidations.mark(of: target))
    }

    /// Whether nothing has happened to a target since its exchange began that forbids writing the response.
    ///
    /// - Parameter answersQueries: whether the response answers other queries of its path (No-Vary-Search), so that an invalidation
    ///   of any of them counts.
    func holds(_ generation: Generation, for target: TargetURI, answersQueries: Bool = false) -> Bool {
        guard generation.mark.isSettled, invalidations.mark(of: target) == generation.mark else { return false }
        guard answersQueries, let ticket = generation.ticket else { return true }
        return ticket.pathMark.isSettled && invalidations.pathMark(of: target) == ticket.pathMark
    }

    /// Begins an exchange and records its order in the generation.
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

    /// Writes a whole entry that is not a response, so nothing supersedes it.
    func put(
        _ key: StoreKey,
        variant: StoreKey,
        description: EntryDescription,
        body: ByteChunk,
        now: Timestamp
    ) async throws(StoreError) {
        try await store.put(key, variant: variant, description: description, body: body, now: StoreInstant(now))
    }

    /// Makes an entry visible, unless there is one that was requested later.
    ///
    /// - Parameters:
    ///   - writer: of the entry.
    ///   - description: replaces the one it began with; nil keeps that.
    ///   - response: when its exchange began, and its place in the order; nil if it is not a response.
    ///   - now: when it is committed.
    /// - Returns: nil if the entry was superseded. Its writer is left alone then, since readers may still follow it.
    func commit(
        _ writer: any EntryWriter,
        description: EntryDescription?,
        as response: WrittenResponse?,
        now: Timestamp
    ) async throws(StoreError) -> StoredEntry? {
        guard let response else { return try await writer.commit(description, now: StoreInstant(now)) }
        guard holds(response), order.isNewest(response.claim) else { return nil }
        let entry = try await writer.commit(description, now: StoreInstant(now))
        if holds(response), order.isNewest(response.claim) { return entry }
        // Both were being written at once, and it is unknown which was later.
        try await remove(entry)
        return nil
    }

    /// What a written response must respect.
    struct WrittenResponse: Sendable {
        let generation: Generation
        let claim: ExchangeOrder.Claim
        /// Whether it also answers other queries of its path (No-Vary-Search).
        let answersQueries: Bool
    }

    /// The store itself notices invalidations of the entry's own key, but not of other queries.
    private func holds(_ response: WrittenResponse) -> Bool {
        !response.answersQueries || holds(response.generation, for: response.claim.target, answersQueries: true)
    }

    /// Changes an entry's description; nil if the entry is gone, or something newer has been written.
    func freshen(
        _ entry: StoredEntry,
        with description: EntryDescription,
        claim: ExchangeOrder.Claim? = nil,
        now: Timestamp
    ) async throws(StoreError) -> StoredEntry? {
        if let claim, !order.enter(claim) { return nil }
        return try await store.replaceDescription(of: entry, with: description, now: StoreInstant(now))
    }

    /// Removes an entry.
    ///
    /// - Parameter claim: of the response that says that the entry is no longer valid. If something newer has been written, the
    ///   response says nothing about that; older responses are no longer written. Nil if no response says so.
    func remove(_ entry: StoredEntry, claim: ExchangeOrder.Claim? = nil) async throws(StoreError) {
        if let claim, !order.enter(claim) { return }
        try await store.remove(entry)
    }

    // MARK: Invalidation

    /// Removes what is stored under keys and what selections match, whichever of them fails; the caller has notified
    /// ``invalidations`` before.
    func invalidate(
        _ keys: [CacheKey],
        and selections: [PurgeSelection] = [],
        now: Timestamp
    ) async throws(StoreError) {
        var failure: StoreError?
        for key in keys {
            do throws(StoreError) { try await store.invalidate(StoreKey(key.framed)) } catch {
                failure = failure ?? error
            }
        }
        for selection in selections {
            do throws(StoreError) { try await purge(selection, now: now) } catch { failure = failure ?? error }
        }
        if let failure { throw failure }
    }

    /// Removes what a selection matches; the caller has notified ``invalidations`` before.
    @discardableResult
    func purge(_ selection: PurgeSelection, now: Timestamp) async throws(StoreError) -> Int? {
        try await store.purge(selection, now: StoreInstant(now))
    }

    func setPinned(_ pinned: Bool, entry: StoredEntry) async throws(StoreError) -> Bool {
        try await store.setPinned(pinned, entry)
    }

    /// Runs an invalidation that nobody waits for; lookups of the target wait until it is done.
    ///
    /// - Parameters:
    ///   - target: what will be invalidated.
    ///   - background: runs `work`.
    ///   - work: the invalidation.
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

    /// Whether there are invalidations in progress that nobody waits for.
    var hasPendingInvalidations: Bool { pendingCount.load(ordering: .acquiring) > 0 }

    /// Waits until those of a target are done, and of other queries of its path: a response stored for one may answer another.
    func waitForInvalidations(of target: TargetURI) async {
        let tasks = pending.withLock { pending in
            pending.filter { $0.key.path == target.path && $0.key.isSameOrigin(as: target) }
                .flatMap { $0.value.values.compactMap(\.self) }
        }
        for task in tasks { await task.value }
    }
}

/// The order in which the responses of current exchanges were requested, so that an older one never replaces a newer one (RFC 9111
/// §4: the most recent response).
///
/// It knows what arrived for a target, to be stored or to say that something stored is no longer valid, during an exchange for that
/// target: later exchanges are newer than all of it. So the table has a row only for targets with a current exchange.
final class ExchangeOrder: Sendable {
    /// A current exchange; releasing it ends it.
    final class Ticket: Sendable {
        let target: TargetURI
        /// How often the path had been invalidated at that time, for responses that answer other queries of it.
        let pathMark: InvalidationLog.PathMark
        private let order: ExchangeOrder

        fileprivate init(_ target: TargetURI, pathMark: InvalidationLog.PathMark, in order: ExchangeOrder) {
            self.target = target
            self.pathMark = pathMark
            self.order = order
        }

        deinit { order.end(target) }
    }

    /// A response that is about to be stored, or whose fields are about to be updated.
    struct Claim: Sendable {
        let target: TargetURI
        /// The order of its request (``SentExchange/order``).
        let order: HybridTimestamp
        let key: StoreKey
        let nominated: NominatedFields
        /// The keys that its requester looks up.
        let readable: [StoreKey]
        /// The fields of that request, which Vary selects from.
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
        /// The latest one that was dropped for lack of space: older ones count as superseded.
        var forgotten: HybridTimestamp?
    }

    /// More variants than this are seldom written during one exchange.
    private static let mostWritten = 64

    private let secret: @Sendable () -> [UInt8]
    private let rows = Mutex<[TargetURI: Row]>([:])

    /// - Parameter secret: the key for the digests of nominated credentials; read each time, since a shared store that lost its
    ///   secret gets another one.
    init(secret: @autoclosure @escaping @Sendable () -> [UInt8]) { self.secret = secret }

    /// Begins an exchange for `target`.
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

    /// When the newest response was requested that arrived for a target meanwhile and answers a request; nil if there is none.
    ///
    /// - Parameters:
    ///   - keys: the request's lookup keys.
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

    /// Whether no response that was requested later has arrived in place of this one.
    func isNewest(_ claim: Claim) -> Bool {
        rows.withLock { rows in rows[claim.target].map { isNewest(claim, in: $0) } ?? true }
    }

    /// Records that a response has arrived, unless one that was requested later has: whatever happens to it, no older one is
    /// written.
    ///
    /// A later one may arrive until this one is written, so call ``isNewest(_:)`` before and after that.
    ///
    /// - Returns: whether it may be written.
    func enter(_ claim: Claim) -> Bool {
        rows.withLock { rows in
            guard let index = rows.index(forKey: claim.target) else { return true }
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

    /// How many targets have a current exchange.
    var count: Int { rows.withLock { $0.count } }
}

/// Counts invalidations, so that a response requested before one is not stored after it.
///
/// After the head has arrived, the store itself keeps watch (see ``CacheStore``); this covers the time before. Targets share a
/// fixed number of counters: a collision only means that a response is not stored that could have been, never the opposite.
final class InvalidationLog: Sendable {
    /// The counts at one moment.
    struct Mark: Sendable, Hashable {
        fileprivate let ofTarget: UInt64
        fileprivate let ofAll: UInt64

        /// Whether it was taken while nothing was being removed.
        var isSettled: Bool { (ofTarget | ofAll) & InvalidationLog.underWay == 0 }

        /// The mark that no target ever has.
        static let never = Mark(ofTarget: .max, ofAll: .max)
    }

    /// The count of a path, whatever the query, at one moment.
    struct PathMark: Sendable, Hashable {
        fileprivate let count: UInt64

        var isSettled: Bool { count & InvalidationLog.underWay == 0 }
    }

    /// What an invalidation covers.
    enum Scope: Sendable {
        case all
        case target(TargetURI)
    }

    /// The bits of a count that say how many removals are under way; the others count invalidations.
    private static let underWay: UInt64 = 0xffff
    private static let one = underWay + 1

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

    /// The mark that `target` must have if only `own` was invalidated since `mark`: what a request invalidates was stored before
    /// its response.
    func mark(_ mark: Mark, of target: TargetURI, after own: [TargetURI]) -> Mark {
        let place = InvalidationLog.place(of: target)
        let count = own.count { InvalidationLog.place(of: $0) == place }
        return Mark(ofTarget: mark.ofTarget &+ UInt64(count) &* InvalidationLog.one, ofAll: mark.ofAll)
    }

    /// Records an invalidation.
    func note(_ scope: Scope) { add(InvalidationLog.one, to: scope) }

    /// Records the beginning of a removal: until its ``end(_:)``, no exchange begins whose response may be stored, since it may
    /// complete or confirm what has not been removed yet.
    func begin(_ scope: Scope) { add(InvalidationLog.one &+ 1, to: scope) }

    /// Records the end of a removal.
    func end(_ scope: Scope) { add(InvalidationLog.one &- 1, to: scope) }

    private func add(_ number: UInt64, to scope: Scope) {
        guard case .target(let target) = scope else { return counts.withLock { $0.ofAll &+= number } }
        let (place, pathPlace) = (InvalidationLog.place(of: target), InvalidationLog.pathPlace(of: target))
        counts.withLock { counts in
            counts.ofTargets[place] &+= number
            counts.ofPaths[pathPlace] &+= number
        }
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
