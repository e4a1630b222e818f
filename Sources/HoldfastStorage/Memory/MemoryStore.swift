// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// A store in memory: the fastest one, lost when the process ends.
///
/// Every lookup is answered without suspending, and every committed body is one chunk. Bytes are counted exactly, as body +
/// metadata + tags + key + variant + 704 for each entry. Entries being written count as they grow, so the sum stays within
/// ``StoreStatistics/capacity`` at all times. Bytes that a reader still holds after their entry has left do not count.
///
/// **Eviction.** When space is needed, entries past their `uselessAfter` leave first, then those that the ``EvictionStrategy``
/// chooses. A strategy may consider a new entry not worth keeping: the entry is then there after its commit like any other, but is
/// the first to leave when its bytes are needed. As much space as was recently being written at once, at most an eighth of the
/// capacity, is kept free for writers; the strategy has the rest. Among several variants, the one whose body is opened counts as
/// used.
///
/// **Cost.** A lookup briefly takes the lock of one of 32 shards, or that of the thread's own copies if several threads want an
/// entry at once, and allocates nothing. Opening a body takes no lock. Uses are recorded for the strategy and passed on later:
/// their order between shards is not kept, and some may be lost if many threads read. Changes are serialized, and cost what the
/// strategy costs; a purge looks at every entry. `statistics.bytesRead` counts a committed body when it is opened, a followed one
/// as it is read.
///
/// **When memory is low,** call ``trim(to:)``. On Apple systems:
///
/// ```swift
/// let source = DispatchSource.makeMemoryPressureSource(eventMask: [.warning, .critical])
/// source.setEventHandler { [store] in
///     store.trim(to: source.data.contains(.critical) ? 0 : store.statistics.capacity / 4)
/// }
/// source.activate()
/// ```
public final class MemoryStore: CacheStore {
    /// Bytes counted for an entry in addition to its content, for its objects and its places in tables: the growth of the heap, as
    /// measured with glibc's allocator.
    package static let overhead = 704

    public let secret: [UInt8]
    let limits: MemoryLimits
    let hashSeed: UInt64
    let shards = MemoryShards()
    /// Taken before any shard's lock, and by every change.
    private let shared: Mutex<SharedMemoryState>
    let bytesRead = StripedCounter()

    /// An empty store.
    ///
    /// - Parameters:
    ///   - capacity: the most bytes held; a negative number means 0, and then every write is refused.
    ///   - policy: which entries are kept.
    ///   - maximumEntrySize: the most bytes of one entry, counted as above; by default a quarter of the capacity, and never more
    ///     than the capacity.
    ///   - maximumVariants: the most variants of one primary key; one more replaces the oldest that is not pinned. At least 1.
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

    /// An empty store with hashes from `generator` and a policy of the caller.
    init(
        limits: MemoryLimits,
        using generator: inout some RandomNumberGenerator,
        makePolicy: @escaping @Sendable (_ capacity: Int) -> any EvictionPolicy
    ) {
        self.limits = limits
        secret = (0..<32).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
        hashSeed = generator.next()
        shared = Mutex(
            SharedMemoryState(accounting: MemoryAccounting(capacity: limits.capacity, makePolicy: makePolicy))
        )
    }

    // MARK: Reading

    /// The stored entries, never nil: memory always knows. A closed store returns none.
    public func peek(_ key: StoreKey, now: StoreInstant) -> [StoredEntry]? {
        lookUp(key, now: now).entries
    }

    public func entries(for key: StoreKey, now: StoreInstant) async throws(StoreError) -> [StoredEntry] {
        let found = lookUp(key, now: now)
        if found.isClosed { throw StoreError.closed }
        return found.entries
    }

    public func body(of entry: StoredEntry) async throws(StoreError) -> any StoredBody {
        guard let bytes = peekBody(of: entry) else {
            if withShard(of: hash(of: entry.key), { $0.isClosed }) { throw StoreError.closed }
            throw StoreError(.superseded, "This version of the entry is gone; look the key up again.")
        }
        return MemoryBody(bytes)
    }

    public func peekBody(of entry: StoredEntry) -> ByteChunk? {
        guard let held = held(of: entry), !held.isGone else { return nil }
        if held.hasSiblings {
            let shard = MemoryShards.number(of: hash(of: entry.key))
            if shards.reading(shard, body: { $0.buffer.note(held.handle) }) { drain(.shard(shard)) }
        }
        bytesRead.add(held.bytes.count)
        return held.bytes
    }

    /// The body that a snapshot carries; a snapshot from another store is looked up.
    private func held(of entry: StoredEntry) -> ResidentBody? {
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
            try shards.withLock(number) { state throws(StoreError) in
                if state.isClosed { throw StoreError.closed }
                page.add(state.table.groups, ofShard: number)
            }
            if page.isFull { break }
        }
        return page.page
    }

    public var statistics: StoreStatistics {
        var statistics = shared.withLock { shared in
            var statistics = shared.counts
            statistics.entriesEvicted = shared.accounting.evicted
            statistics.entryCount = shared.accounting.count
            statistics.bytesUsed = shared.accounting.used
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

    /// Evicts until at most `bytes` are held, as far as possible: pinned entries and entries being written stay.
    ///
    /// Call this when memory is low; the capacity does not change.
    public func trim(to bytes: Int) {
        try? change { shared throws(StoreError) in shared.accounting.trim(to: max(0, bytes)) }
    }

    /// Drops every entry; nothing is kept.
    public func close() async {
        shared.withLock { shared in
            shared.isClosed = true
            shared.accounting.removeAll()
            for shard in 0..<MemoryShards.count { shards.changing(shard) { $0.close() } }
            shards.dropCopies()
        }
    }

    // MARK: Locks

    /// Runs `body` with the lock of the shard that contains everything about a primary key.
    func withShard<Result: Sendable>(of hash: UInt64, _ body: (inout ShardState) -> Result) -> Result {
        shards.withLock(MemoryShards.number(of: hash), body: body)
    }

    /// Like ``withShard(of:_:)``, for changes of the table.
    func changeShard<Result: Sendable>(of hash: UInt64, _ body: (inout ShardState) -> Result) -> Result {
        shards.changing(MemoryShards.number(of: hash), body: body)
    }

    /// Runs a change with the shared state locked and all uses so far passed to the policy. Evicted entries are removed from
    /// the shards before the lock is released, even if `body` throws.
    func change<Result: Sendable>(
        now: StoreInstant? = nil,
        _ body: (inout SharedMemoryState) throws(StoreError) -> Result
    ) throws(StoreError) -> Result {
        // Freed after the lock is released.
        var gone: [MemoryRecord] = []
        defer { withExtendedLifetime(gone) {} }
        return try shared.withLock { shared throws(StoreError) in
            if shared.isClosed { throw StoreError.closed }
            for noted in MemoryShards.ReadBufferID.all { shared.drain(noted, of: shards) }
            // What a use has evicted is gone for `body` too.
            applyEvictions(&shared)
            if let now { shared.accounting.latestNow = now }
            defer { gone = takeRemoved(&shared) }
            return try body(&shared)
        }
    }

    /// Removes evicted entries from the shards, and returns all removed records, to be freed once the lock is released.
    private func takeRemoved(_ shared: inout SharedMemoryState) -> [MemoryRecord] {
        applyEvictions(&shared)
        let gone = shared.takeRemoved()
        if !gone.isEmpty { shards.dropCopies() }
        return gone
    }

    /// Removes from the shards what was evicted.
    private func applyEvictions(_ shared: inout SharedMemoryState) {
        if shared.accounting.evictions.isEmpty { return }
        for eviction in shared.accounting.evictions {
            let record = changeShard(of: eviction.hash) { $0.remove(eviction.handle, hash: eviction.hash) }
            if let record { shared.gone.append(record) }
        }
        shared.accounting.evictions.removeAll(keepingCapacity: true)
    }

    private func lookUp(_ key: StoreKey, now: StoreInstant) -> ShardState.Found {
        let hash = hash(of: key)
        let (found, due) = shards.lookUp(key, hash: hash, now: now)
        if let due { drain(due) }
        return found
    }

    /// Drains a read buffer into the policy, unless the shared state is locked.
    private func drain(_ noted: MemoryShards.ReadBufferID) {
        var gone: [MemoryRecord] = []
        defer { withExtendedLifetime(gone) {} }
        _ = shared.withLockIfAvailable { shared in
            shared.drain(noted, of: shards)
            gone = takeRemoved(&shared)
        }
    }
}

/// Changes of single entries: the accounting decides what leaves, the shards show what is there.
extension MemoryStore {
    public func write(
        _ key: StoreKey,
        variant: StoreKey,
        description: EntryDescription,
        expectedLength: Int?,
        now: StoreInstant
    ) async throws(StoreError) -> any EntryWriter {
        let description = description.kept
        let cost = MemoryLimits.cost(key, variant: variant, description: description, body: 0)
        let id = try change(now: now) { shared throws(StoreError) in
            try limits.check(cost, and: max(0, expectedLength ?? 0))
            try shared.accounting.makeRoom(cost)
            return shared.accounting.begin(.init(key: key, variant: variant, description: description, reserved: cost))
        }
        return MemoryWriter(store: self, id: id)
    }

    @discardableResult
    public func replaceDescription(
        of entry: StoredEntry,
        with description: EntryDescription,
        now: StoreInstant
    ) async throws(StoreError) -> StoredEntry? {
        let description = description.kept
        let hash = hash(of: entry.key)
        return try change(now: now) { shared throws(StoreError) in
            guard let old = record(of: entry, hash) else { return nil }
            let cost = MemoryLimits.cost(
                entry.key,
                variant: entry.variant,
                description: description,
                body: old.entry.bodyLength
            )
            try limits.check(cost)
            let growth = cost - MemoryLimits.cost(old.entry)
            // Counts as used, so that it leaves last and other entries make room.
            shared.accounting.use(old.handle)
            try shared.accounting.makeRoom(growth)
            guard shared.accounting.owner(of: old.handle) != nil else {
                throw StoreError(.noSpace, "There is no room for the longer description; the entry was evicted.")
            }
            let isPinned = old.entry.isPinned && shared.accounting.pinnedBytes + growth <= limits.pins
            let changed = old.entry.changed(description: description, version: shared.nextVersion(), isPinned: isPinned)
            shared.accounting.change(
                old.handle,
                cost: cost,
                uselessAfter: description.uselessAfter,
                isPinned: isPinned
            )
            let record = MemoryRecord(changed, held: ResidentBody(old.held.bytes, handle: old.handle, in: shards))
            publish(record, hash: hash, shared: &shared)
            return record.entry
        }
    }

    @discardableResult
    public func setPinned(_ pinned: Bool, _ entry: StoredEntry) async throws(StoreError) -> Bool {
        let hash = hash(of: entry.key)
        return try change { shared throws(StoreError) in
            guard let old = record(of: entry, hash) else { return false }
            if old.entry.isPinned == pinned { return true }
            if pinned, shared.accounting.pinnedBytes + MemoryLimits.cost(old.entry) > limits.pins { return false }
            shared.accounting.change(
                old.handle,
                cost: MemoryLimits.cost(old.entry),
                uselessAfter: old.entry.description.uselessAfter,
                isPinned: pinned
            )
            let changed = old.entry.changed(isPinned: pinned)
            applyEvictions(&shared)
            changeShard(of: hash) { state in
                var records = state.table.records(of: entry.key, hash)
                guard let place = records.firstIndex(where: { $0.handle == old.handle }) else { return }
                records[place] = MemoryRecord(changed, held: old.held)
                state.table.replace(entry.key, hash: hash, with: records)
            }
            return true
        }
    }

    public func remove(_ entry: StoredEntry) async throws(StoreError) {
        let hash = hash(of: entry.key)
        try change { shared throws(StoreError) in
            guard let old = record(of: entry, hash) else { return }
            shared.accounting.remove(old.handle)
            shared.counts.entriesRemoved &+= 1
            if let gone = changeShard(of: hash, { $0.remove(old.handle, hash: hash) }) { shared.gone.append(gone) }
        }
    }

    public func invalidate(_ key: StoreKey) async throws(StoreError) {
        let hash = hash(of: key)
        try change { shared throws(StoreError) in
            shared.accounting.writers.supersede { $0.key == key }
            let records = changeShard(of: hash) { state in
                let records = state.table.records(of: key, hash)
                state.table.replace(key, hash: hash, with: [])
                return records
            }
            for record in records { shared.accounting.remove(record.handle) }
            shared.counts.entriesRemoved &+= records.count
            shared.gone += records
        }
    }

    // MARK: Called by writers

    func reserve(_ count: Int, for id: UInt64) throws(StoreError) {
        try change { shared throws(StoreError) in
            guard let writer = shared.accounting.writers[id] else { throw StoreError.ended }
            try limits.check(writer.reserved, and: count)
            try shared.accounting.makeRoom(count)
            shared.accounting.reserve(count, for: id)
        }
    }

    func commit(
        _ id: UInt64,
        newDescription: EntryDescription?,
        body: ByteChunk,
        now: StoreInstant
    ) throws(StoreError) -> StoredEntry {
        try change(now: now) { shared throws(StoreError) in
            guard let writer = shared.accounting.writers[id] else { throw StoreError.ended }
            if writer.isSuperseded { throw StoreError.superseded }
            let description = newDescription?.kept ?? writer.description
            let cost = MemoryLimits.cost(
                writer.key,
                variant: writer.variant,
                description: description,
                body: body.count
            )
            try limits.check(cost)
            try shared.accounting.makeRoom(cost - writer.reserved)
            applyEvictions(&shared)
            let hash = hash(of: writer.key)
            var others = withShard(of: hash) { $0.table.records(of: writer.key, hash) }
            let older = others.firstIndex { $0.entry.variant == writer.variant }.map { others.remove(at: $0) }
            var tooMany: SlotHandle?
            if others.count >= limits.variants {
                tooMany = others.last { !$0.entry.isPinned }?.handle
                guard tooMany != nil else {
                    throw StoreError(.noSpace, "Every variant of this key is pinned; unpin one to store another.")
                }
            }
            shared.accounting.writers.end(id)
            if let tooMany { shared.accounting.evict(tooMany.slot) }
            // A pin applies to the resource, so it outlives a version as far as there is room for pins.
            let olderPins = older.map { $0.entry.isPinned ? MemoryLimits.cost($0.entry) : 0 } ?? 0
            let isPinned = olderPins > 0 && shared.accounting.pinnedBytes - olderPins + cost <= limits.pins
            let handle: SlotHandle
            let end = description.uselessAfter
            if let older {
                handle = older.handle
                shared.accounting.change(handle, cost: cost, uselessAfter: end, isPinned: isPinned)
            } else {
                let policyKey = HeadHash.of(writer.variant.bytes, seed: hash)
                handle = shared.accounting.enter(
                    hash: hash,
                    policyKey: policyKey,
                    cost: cost,
                    uselessAfter: end,
                    isPinned: isPinned
                )
            }
            let entry = StoredEntry(
                key: writer.key,
                variant: writer.variant,
                version: shared.nextVersion(),
                description: description,
                bodyLength: body.count,
                storedAt: now,
                isPinned: isPinned
            )
            let record = MemoryRecord(entry, held: ResidentBody(body, handle: handle, in: shards))
            publish(record, hash: hash, shared: &shared)
            shared.counts.entriesWritten &+= 1
            shared.counts.bytesWritten &+= body.count
            return record.entry
        }
    }

    func abandon(_ id: UInt64) {
        try? change { shared throws(StoreError) in
            shared.accounting.writers.end(id)
            shared.accounting.fit()
        }
    }

    func hash(of key: StoreKey) -> UInt64 {
        HeadHash.of(key.bytes, seed: hashSeed)
    }

    /// Shows a record in place of the older one of its variant, as the newest; first removes what was evicted.
    private func publish(_ record: MemoryRecord, hash: UInt64, shared: inout SharedMemoryState) {
        applyEvictions(&shared)
        let key = record.entry.key
        let older = changeShard(of: hash) { state in
            var records = state.table.records(of: key, hash)
            let place = records.firstIndex { $0.entry.variant == record.entry.variant }
            let older = place.map { records.remove(at: $0) }
            state.table.replace(key, hash: hash, with: [record] + records)
            return older
        }
        if let older { shared.gone.append(older) }
    }

    /// The record of one version, if it is still there.
    private func record(of entry: StoredEntry, _ hash: UInt64) -> MemoryRecord? {
        withShard(of: hash) { state in
            state.record(of: entry, hash)
        }
    }
}

/// Purges, and other operations that look at every entry.
extension MemoryStore {
    /// What a purge leaves of one key.
    private struct Cut: Sendable {
        let key: StoreKey
        let hash: UInt64
        let left: [MemoryRecord]
        let taken: [MemoryRecord]
    }

    @discardableResult
    public func purge(_ selection: PurgeSelection, now: StoreInstant) async throws(StoreError) -> Int? {
        var decision = PurgeDecision(selection)
        while true {
            let current = decision
            let (removed, unknown) = try change { shared throws(StoreError) in
                // While the shared state is locked, entries do not change, so they can be examined shard by shard.
                let unknown = current.unknown(in: current.asks ? entries : [], shared.accounting.writers, now: now)
                if !unknown.isEmpty { return (0, unknown) }
                shared.accounting.writers.supersede { current.takes($0) }
                return (take(cuts { current.takes($0) }, shared: &shared), unknown)
            }
            if unknown.isEmpty { return removed }
            // The caller's predicate runs here, outside the lock.
            decision.decide(unknown)
        }
    }

    /// Every entry, in no order; consistent if the shared state is locked.
    private var entries: [StoredEntry] {
        (0..<MemoryShards.count).flatMap { shard in
            shards.withLock(shard) { state in state.table.groups.flatMap(\.entries) }
        }
    }

    private func cuts(_ takes: (StoredEntry) -> Bool) -> ArraySlice<(Int, [Cut])> {
        var cuts: [(Int, [Cut])] = []
        for shard in 0..<MemoryShards.count {
            let groups = shards.withLock(shard) { $0.table.groups }
            let found = groups.compactMap { group -> Cut? in
                guard group.entries.contains(where: takes) else { return nil }
                let left = group.records.filter { !takes($0.entry) }
                let taken = group.records.filter { takes($0.entry) }
                return Cut(key: group.key, hash: group.hash, left: left, taken: taken)
            }
            if !found.isEmpty { cuts.append((shard, found)) }
        }
        return cuts[...]
    }

    private func take(_ cuts: ArraySlice<(Int, [Cut])>, shared: inout SharedMemoryState) -> Int {
        removeTogether(cuts)
        var count = 0
        for (_, cuts) in cuts {
            for record in cuts.flatMap(\.taken) {
                shared.accounting.remove(record.handle)
                shared.gone.append(record)
                count += 1
            }
        }
        shared.counts.entriesRemoved &+= count
        return count
    }

    /// Removes what is cut while all shards concerned are locked, so that nobody sees only a part removed.
    private func removeTogether(_ cuts: ArraySlice<(Int, [Cut])>) {
        guard let (shard, first) = cuts.first else { return }
        // All shards count as changed before the first change, so that no copy shows what an earlier lookup found gone.
        shards.changing(shard) { state in
            removeTogether(cuts.dropFirst())
            for cut in first { state.table.replace(cut.key, hash: cut.hash, with: cut.left) }
        }
    }
}

/// Memory needs no checking and has no gaps: both operations only count.
extension MemoryStore: InspectableStore {
    public func verify(
        _ progress: @escaping @Sendable (VerificationProgress) -> Void
    ) async throws(StoreError) -> VerificationReport {
        let (report, bytes) = try change { shared throws(StoreError) in
            var report = VerificationReport()
            for entry in entries {
                report.entriesChecked += 1
                report.bodyBytesChecked += entry.bodyLength
            }
            return (report, shared.accounting.used)
        }
        progress(VerificationProgress(entries: report.entriesChecked, bytesRead: bytes, bytesTotal: bytes))
        return report
    }

    @discardableResult
    public func compact() async throws(StoreError) -> CompactionReport {
        let bytes = try change { shared throws(StoreError) in shared.accounting.used }
        return CompactionReport(bytesBefore: bytes, bytesAfter: bytes)
    }
}
