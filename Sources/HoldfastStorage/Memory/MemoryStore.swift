// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// A store in memory: the fastest one, gone with the process.
///
/// Every look-up is answered without suspending and every committed body lies in one piece. Bytes are counted exactly, as
/// body + metadata + tags + key + variant + 704 for each entry; entries being written count as they grow, so that the sum
/// stays within ``StoreStatistics/capacity`` at every instant. Bytes that a reader still holds after their entry left count
/// no more.
///
/// **What leaves.** Where room is needed, entries past their `uselessAfter` leave first, then what the ``EvictionStrategy``
/// chooses. A strategy may find a new entry not worth keeping: then the entry is there after its commit like any other, and
/// is the first to leave when bytes are needed that it takes. What was most lately being written at once, an eighth of the
/// capacity at most, is kept clear for writers; the strategy has the rest. Of several variants the one whose body is opened
/// counts as used.
///
/// **Cost.** A look-up takes one short lock of one of 32 shards, or of the thread's own copies where several threads want an entry at
/// once, and allocates nothing; opening a body takes none; it notes the use for the strategy, which
/// is told later: look-ups since the last change count in no order beyond that of their shard, and some may be forgotten
/// where many threads read. Changes take turns, and cost what the strategy costs; a purge looks at every entry.
/// `statistics.bytesRead` counts a committed body when it is opened, a followed one as it is read.
///
/// **Where memory runs short** call ``trim(to:)``. On Apple systems:
///
/// ```swift
/// let source = DispatchSource.makeMemoryPressureSource(eventMask: [.warning, .critical])
/// source.setEventHandler { [store] in
///     store.trim(to: source.data.contains(.critical) ? 0 : store.statistics.capacity / 4)
/// }
/// source.activate()
/// ```
public final class MemoryStore: CacheStore {
    /// Bytes counted for an entry beside its own, for the objects it is made of and the tables it stands in: what the heap grows by, as
    /// measured with glibc's allocator.
    package static let overhead = 704

    public let secret: [UInt8]
    let limits: MemoryLimits
    let hashSeed: UInt64
    let shards = MemoryShards()
    /// Taken before any shard's lock, and by every change.
    private let book: Mutex<MemoryBook>
    private let bytesRead = StripedCount()

    /// An empty store.
    ///
    /// - Parameters:
    ///   - capacity: bytes held at most; a negative number means 0, and then every write is refused.
    ///   - policy: which entries are kept.
    ///   - maximumEntrySize: bytes of one entry, counted as above; by default a quarter of the capacity, never more than it.
    ///   - maximumVariants: variants of one primary key; one more replaces the oldest that is not pinned. At least 1.
    public convenience init(
        capacity: Int,
        policy: EvictionStrategy = .memory,
        maximumEntrySize: Int? = nil,
        maximumVariants: Int = 16
    ) {
        var generator = SystemRandomNumberGenerator()
        let seed: UInt64 = generator.next()
        self.init(
            limits: MemoryLimits(capacity: capacity, entrySize: maximumEntrySize, variants: maximumVariants),
            using: &generator
        ) { policy.makePolicy(capacity: $0, seed: seed) }
    }

    /// An empty store whose hashes follow from `generator`, over a policy of the caller's.
    init(
        limits: MemoryLimits,
        using generator: inout some RandomNumberGenerator,
        makePolicy: @escaping @Sendable (_ capacity: Int) -> any EvictionPolicy
    ) {
        self.limits = limits
        secret = (0..<32).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
        hashSeed = generator.next()
        book = Mutex(MemoryBook(ledger: MemoryLedger(capacity: limits.capacity, makePolicy: makePolicy)))
    }

    // MARK: Reading

    /// What is there, never nil: memory always knows. A closed store answers that nothing is.
    public func peek(_ key: StoreKey, now: StoreInstant) -> [StoredEntry]? {
        lookUp(key, now: now).entries
    }

    public func entries(for key: StoreKey, now: StoreInstant) async throws(StoreError) -> [StoredEntry] {
        let found = lookUp(key, now: now)
        if found.isClosed { throw Self.closed }
        return found.entries
    }

    public func body(of entry: StoredEntry) async throws(StoreError) -> any StoredBody {
        guard let bytes = peekBody(of: entry) else {
            if withShard(of: hash(of: entry.key), { $0.isClosed }) { throw Self.closed }
            throw StoreError(.superseded, "This version of the entry is gone; look the key up again.")
        }
        return MemoryBody(bytes)
    }

    public func peekBody(of entry: StoredEntry) -> ByteChunk? {
        guard let held = held(of: entry), !held.isGone else { return nil }
        if held.hasSiblings {
            let shard = MemoryShards.number(of: hash(of: entry.key))
            if shards.reading(shard, { $0.note(held.ticket) }) { passOn(.shard(shard)) }
        }
        bytesRead.add(held.bytes.count)
        return held.bytes
    }

    /// What a snapshot carries of its body; a snapshot that this store did not make is looked up.
    private func held(of entry: StoredEntry) -> HeldBody? {
        if let held = entry.held, held.isIn(shards) { return held }
        let hash = hash(of: entry.key)
        return withShard(of: hash) { $0.record(of: entry, hash)?.held }
    }

    public func list(
        after cursor: StoreCursor?,
        limit: Int,
        now: StoreInstant
    ) async throws(StoreError) -> StorePage {
        var page = MemoryPage(after: cursor, limit: limit)
        for number in page.firstShard..<max(page.firstShard, MemoryShards.count) {
            let taken = page
            page = try shards.withLock(number) { state throws(StoreError) in
                if state.isClosed { throw Self.closed }
                return taken.adding(state.table.groups, ofShard: number)
            }
            if page.isFull { break }
        }
        return page.page
    }

    public var statistics: StoreStatistics {
        var statistics = book.withLock { book in
            var statistics = book.counts
            statistics.entriesEvicted = book.ledger.evicted
            statistics.entryCount = book.ledger.count
            statistics.bytesUsed = book.ledger.used
            return statistics
        }
        statistics.capacity = limits.capacity
        for shard in 0..<MemoryShards.count {
            let (lookups, found) = shards.withLock(shard) { ($0.lookups, $0.lookupsFound) }
            statistics.lookups &+= lookups
            statistics.lookupsFound &+= found
        }
        let ofCopies = shards.lookupsOfCopies
        statistics.lookups &+= ofCopies
        statistics.lookupsFound &+= ofCopies
        statistics.bytesRead = bytesRead.value
        return statistics
    }

    /// Evicts until at most `bytes` are held, as far as entries that are neither pinned nor being written allow.
    ///
    /// For a warning that memory runs short; the capacity stays as it is.
    public func trim(to bytes: Int) {
        try? change { book throws(StoreError) in book.ledger.trim(to: max(0, bytes), &book.leaving) }
    }

    /// Drops every entry; nothing is kept for later.
    public func close() async {
        book.withLock { book in
            book.isClosed = true
            book.ledger.removeAll()
            for shard in 0..<MemoryShards.count { shards.changing(shard) { $0.close() } }
            shards.dropCopies()
        }
    }

    func countFollowed(_ count: Int) {
        bytesRead.add(count)
    }

    // MARK: Locks

    /// Runs `body` with the lock of the shard held in which everything about a primary key lies.
    func withShard<Result: Sendable>(of hash: UInt64, _ body: (inout ShardState) -> Result) -> Result {
        shards.withLock(MemoryShards.number(of: hash), body)
    }

    /// As ``withShard(of:_:)``, for what changes the table.
    func changeShard<Result: Sendable>(of hash: UInt64, _ body: (inout ShardState) -> Result) -> Result {
        shards.changing(MemoryShards.number(of: hash), body)
    }

    /// Runs a change with the book's lock held and the policy told of all uses so far; what leaves is taken out of the shards
    /// before the lock is released, also where `body` throws.
    func change<Result: Sendable>(
        now: StoreInstant? = nil,
        _ body: (inout MemoryBook) throws(StoreError) -> Result
    ) throws(StoreError) -> Result {
        // Freed after the lock.
        var gone: [MemoryRecord] = []
        defer { withExtendedLifetime(gone) {} }
        return try book.withLock { book throws(StoreError) in
            if book.isClosed { throw Self.closed }
            for noted in MemoryShards.NotePlace.all { book.passOn(noted, of: shards) }
            if let now { book.ledger.latestNow = now }
            defer {
                takeOut(&book)
                gone = book.takeGone()
                if !gone.isEmpty { shards.dropCopies() }
            }
            return try body(&book)
        }
    }

    /// Takes out of the shards what has left the ledger.
    func takeOut(_ book: inout MemoryBook) {
        for leaving in book.leaving {
            let record = changeShard(of: leaving.hash) { $0.remove(leaving.ticket, leaving.hash) }
            if let record { book.gone.append(record) }
        }
        book.leaving.removeAll(keepingCapacity: true)
    }

    private func lookUp(_ key: StoreKey, now: StoreInstant) -> ShardState.Found {
        let hash = hash(of: key)
        let (found, due) = shards.lookUp(key, hash, now: now)
        if let due { passOn(due) }
        return found
    }

    /// Tells the policy of a shard's uses, unless somebody else has the book.
    private func passOn(_ noted: MemoryShards.NotePlace) {
        var gone: [MemoryRecord] = []
        defer { withExtendedLifetime(gone) {} }
        _ = book.withLockIfAvailable { book in
            book.passOn(noted, of: shards)
            takeOut(&book)
            gone = book.takeGone()
            if !gone.isEmpty { shards.dropCopies() }
        }
    }

    static let closed = StoreError(.closed, "The store is closed; open a new one.")
}
