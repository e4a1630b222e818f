// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// A fast store over a large one: what is asked for often is answered from memory, everything is kept below.
///
/// **Choose.** Over a ``DiskStore``, or any other store whose look-ups or bodies cost more than memory.
/// **Use.** Make all changes through this store: what is changed behind its back below shows only once it left the upper tier.
///
/// The lower tier is the truth: every write, removal, purge, pin and freshening goes there, and its capacity, its secret and
/// its restarts are the whole's. The upper tier holds copies of entries that were found below, by a ``PromotionRule``, all
/// variants of a key or none; a failure of it costs time and never a call. An entry shown from above is the entry that the
/// lower tier showed: same version, time, pin and need of validation.
///
/// Copies are made in the background after the reader has its bytes, 16 at once and an eighth of the upper tier's capacity at
/// most; a copy that a change overtook is given up. Now and then a key that is only asked for above is looked up below too, so
/// that its eviction there comes to know of it.
public final class TieredStore: CacheStore {
    let upper: any CacheStore
    let lower: any CacheStore
    let rule: PromotionRule
    let capacity: Int
    let ledger: Mutex<TierLedger>
    let sketch: Mutex<HitSketch>
    let settling = Mutex<[CheckedContinuation<Void, Never>]>([])
    /// Changes under way; while there are none no look-up takes the ledger's lock.
    private let changes = Atomic(0)
    /// The life of the upper tier: raised when it could not be made to forget.
    let generation = Atomic<UInt64>(0)
    let groups = Atomic<UInt64>(0)
    private let lookups = Atomic(0)
    private let lookupsFound = Atomic(0)
    private let lookupsAbove = Atomic(0)
    private let bytesReadAbove = Atomic(0)
    /// Body bytes that promotions read below, which no reader asked for.
    let bytesReread = Atomic(0)
    private let latestNow = Atomic<Int64>(.min)
    let promotions = Atomic(0)
    let bytesPromoted = Atomic(0)
    let promotionsDropped = Atomic(0)

    /// Of this many look-ups answered above, one is passed on below.
    private static let passOnEvery = 16

    /// A store over `lower`.
    ///
    /// - Parameters:
    ///   - memory: bytes that the upper tier, a ``MemoryStore``, holds at most.
    ///   - lower: the store that keeps everything; this one closes it.
    ///   - rule: what is promoted, and when; by default at the second hit.
    public convenience init(memory: Int, over lower: any CacheStore, rule: PromotionRule = .secondHit) {
        self.init(upper: MemoryStore(capacity: memory), over: lower, rule: rule)
    }

    /// A store over `lower` with an upper tier of your own.
    ///
    /// - Parameters:
    ///   - upper: empty, and used by nothing else; its `statistics.capacity` sets the bounds of copies.
    ///   - lower: the store that keeps everything.
    ///   - rule: what is promoted, and when; by default at the second hit.
    public init(upper: any CacheStore, over lower: any CacheStore, rule: PromotionRule = .secondHit) {
        self.upper = upper
        self.lower = lower
        self.rule = rule
        capacity = max(0, upper.statistics.capacity)
        ledger = Mutex(TierLedger(maximumBytes: max(capacity / 8, rule.maximumBody(capacity: capacity))))
        sketch = Mutex(HitSketch(window: rule.hits > 1 ? rule.window : 1))
    }

    /// The lower tier's.
    public var secret: [UInt8] { lower.secret }

    /// What lies above, or what the lower tier can say without suspending.
    public func peek(_ key: StoreKey, now: StoreInstant) -> [StoredEntry]? {
        latestNow.store(now.milliseconds, ordering: .relaxed)
        if trusts(key), let found = upper.peek(key, now: now), let entries = group(found), confirm(entries, now: now) {
            count(entries, above: true)
            return entries
        }
        guard let entries = lower.peek(key, now: now) else { return nil }
        count(entries, above: false)
        return entries
    }

    public func entries(for key: StoreKey, now: StoreInstant) async throws(StoreError) -> [StoredEntry] {
        latestNow.store(now.milliseconds, ordering: .relaxed)
        if trusts(key) {
            var found = upper.peek(key, now: now)
            if found == nil { found = try? await upper.entries(for: key, now: now) }
            if let found, let entries = group(found), confirm(entries, now: now) {
                count(entries, above: true)
                return entries
            }
        }
        let entries = try await lower.entries(for: key, now: now)
        count(entries, above: false)
        return entries
    }

    public func body(of entry: StoredEntry) async throws(StoreError) -> any StoredBody {
        if let body = await bodyAbove(of: entry) { return body }
        return promoting(try await lower.body(of: entry), of: entry)
    }

    public func peekBody(of entry: StoredEntry) -> ByteChunk? {
        guard trusts(entry.key), let held = copyAbove(of: entry, in: upper.peek(entry.key, now: now) ?? []),
            let bytes = upper.peekBody(of: held)
        else { return nil }
        bytesReadAbove.add(entry.bodyLength, ordering: .relaxed)
        return bytes
    }

    public func write(
        _ key: StoreKey,
        variant: StoreKey,
        description: EntryDescription,
        expectedLength: Int?,
        now: StoreInstant
    ) async throws(StoreError) -> any EntryWriter {
        let writer = try await lower.write(
            key,
            variant: variant,
            description: description,
            expectedLength: expectedLength,
            now: now
        )
        return TieredWriter(writer, of: key, in: self)
    }

    /// The lower tier's.
    public var fillLeasing: (any FillLeasing)? { lower.fillLeasing }

    /// Weakly consistent as the lower tier's list, which it is.
    public func list(
        after cursor: StoreCursor?,
        limit: Int,
        now: StoreInstant
    ) async throws(StoreError) -> StorePage {
        try await lower.list(after: cursor, limit: limit, now: now)
    }

    /// The lower tier's, with the look-ups and the bytes read of the whole; see ``tierStatistics``.
    public var statistics: StoreStatistics {
        var whole = lower.statistics
        whole.lookups = lookups.load(ordering: .relaxed)
        whole.lookupsFound = lookupsFound.load(ordering: .relaxed)
        whole.bytesRead &+= bytesReadAbove.load(ordering: .relaxed) &- bytesReread.load(ordering: .relaxed)
        return whole
    }

    /// What each tier counted.
    public var tierStatistics: TierStatistics {
        var above = upper.statistics
        above.lookups = lookups.load(ordering: .relaxed)
        above.lookupsFound = lookupsAbove.load(ordering: .relaxed)
        above.bytesRead = bytesReadAbove.load(ordering: .relaxed)
        return TierStatistics(
            upper: above,
            lower: lower.statistics,
            promotions: promotions.load(ordering: .relaxed),
            bytesPromoted: bytesPromoted.load(ordering: .relaxed),
            promotionsDropped: promotionsDropped.load(ordering: .relaxed)
        )
    }

    /// Closes both tiers.
    public func close() async {
        await lower.close()
        await upper.close()
        await settle()
    }

    // MARK: What may be believed

    /// Whether nothing is being changed that the upper tier may not know of yet.
    private func trusts(_ key: StoreKey) -> Bool {
        changes.load(ordering: .acquiring) == 0 || ledger.withLock { $0.trusts(key) }
    }

    func noteChange(of key: StoreKey?) {
        changes.add(1, ordering: .sequentiallyConsistent)
        ledger.withLock { $0.beginChange(of: key) }
    }

    func noteChanged(_ key: StoreKey?) {
        ledger.withLock { $0.endChange(of: key) }
        changes.subtract(1, ordering: .sequentiallyConsistent)
    }

    private func group(_ found: [StoredEntry]) -> [StoredEntry]? {
        if found.isEmpty { return nil }
        return PromotedEntry.group(found, generation: generation.load(ordering: .acquiring))?.map(\.entry)
    }

    /// Passes one look-up in some on to the lower tier; false where that shows something else.
    private func confirm(_ entries: [StoredEntry], now: StoreInstant) -> Bool {
        let isPassedOn = lookupsAbove.load(ordering: .relaxed) % TieredStore.passOnEvery == TieredStore.passOnEvery - 1
        guard isPassedOn, let key = entries.first?.key, let below = lower.peek(key, now: now) else { return true }
        if below == entries { return true }
        // Evicted below since: what a look-up below shows is the truth.
        startForgetting(key)
        return false
    }

    private func count(_ entries: [StoredEntry], above: Bool) {
        lookups.add(1, ordering: .relaxed)
        if !entries.isEmpty { lookupsFound.add(1, ordering: .relaxed) }
        if above { lookupsAbove.add(1, ordering: .relaxed) }
    }

    private func bodyAbove(of entry: StoredEntry) async -> (any StoredBody)? {
        guard trusts(entry.key), let body = await heldBody(of: entry) else { return nil }
        bytesReadAbove.add(entry.bodyLength, ordering: .relaxed)
        return body.bytesInMemory == nil ? SafeguardedBody(body, of: entry, below: lower) : body
    }

    /// The body of one version as the upper tier has it.
    func heldBody(of entry: StoredEntry) async -> (any StoredBody)? {
        let now = now
        var found = upper.peek(entry.key, now: now)
        if found == nil { found = try? await upper.entries(for: entry.key, now: now) }
        guard let held = copyAbove(of: entry, in: found ?? []) else { return nil }
        return try? await upper.body(of: held)
    }

    /// The copy of one version, with its body, among what the upper tier has under its key.
    private func copyAbove(of entry: StoredEntry, in found: [StoredEntry]) -> StoredEntry? {
        let generation = generation.load(ordering: .acquiring)
        return found.first { held in
            guard held.variant == entry.variant, let promoted = PromotedEntry(held) else { return false }
            return promoted.hasBody && promoted.generation == generation && promoted.entry.version == entry.version
        }
    }

    /// The latest instant a caller told of.
    var now: StoreInstant { StoreInstant(milliseconds: latestNow.load(ordering: .relaxed)) }
}
