// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The state that all changes of a ``MemoryStore`` share, under one lock.
struct SharedMemoryState: Sendable {
    var accounting: MemoryAccounting
    /// The counts of changes; the rest is counted elsewhere.
    var counts = StoreStatistics()
    var isClosed = false
    /// Records that were removed, to be freed once the lock is released.
    var gone: [MemoryRecord] = []
    private var handles: [SlotHandle] = []
    private var lastVersion: UInt64 = 0

    /// No entries.
    init(accounting: MemoryAccounting) { self.accounting = accounting }

    /// Returns the records removed since the last call; from now on, no snapshot opens their bodies.
    mutating func takeRemoved() -> [MemoryRecord] {
        for record in gone { record.held.setGone() }
        defer { gone.removeAll() }
        return gone
    }

    /// A version higher than all before it.
    mutating func nextVersion() -> StoredEntry.Version {
        lastVersion &+= 1
        return StoredEntry.Version(number: lastVersion)
    }

    /// Reports the uses that a shard noted to the policy.
    mutating func drain(_ noted: MemoryShards.ReadBufferID, of shards: MemoryShards) {
        if let now = shards.drainReads(noted, handles: &handles) {
            accounting.latestNow = max(accounting.latestNow, now)
        }
        // Most places have nothing to tell.
        guard !handles.isEmpty else { return }
        for handle in handles { accounting.use(handle) }
        handles.removeAll(keepingCapacity: true)
    }
}

/// The numbers that a ``MemoryStore`` was made with, and what follows from them.
struct MemoryLimits: Sendable {
    let capacity: Int
    let entrySize: Int
    let variants: Int

    init(capacity: Int, entrySize: Int?, variants: Int) {
        self.capacity = max(0, capacity)
        self.entrySize = min(max(0, entrySize ?? self.capacity / 4), self.capacity)
        self.variants = max(1, variants)
    }

    /// The most bytes that pinned entries may hold.
    var pins: Int { capacity / 2 }

    /// The cost of an entry in bytes.
    static func cost(_ key: StoreKey, variant: StoreKey, description: EntryDescription, body: Int) -> Int {
        MemoryStore.overhead + key.bytes.count + variant.bytes.count + description.byteCount + body
    }

    /// The cost of an entry in bytes.
    static func cost(_ entry: StoredEntry) -> Int {
        cost(entry.key, variant: entry.variant, description: entry.description, body: entry.bodyLength)
    }

    /// Throws `.tooLarge` if an entry may not take this many bytes; neither number is negative.
    func check(_ bytes: Int, and more: Int = 0) throws(StoreError) {
        if bytes > entrySize || more > entrySize - bytes {
            throw .tooLarge(limit: entrySize)
        }
    }
}

/// A page of a ``MemoryStore``'s list while it is collected, shard after shard: in the order of the groups' places, and within a
/// group of the variants' bytes.
///
/// A group keeps its place for its lifetime, so a record that stays is listed once. Costs a step for each place passed.
struct MemoryPage: Sendable {
    private let limit: Int
    private var listed: [ListedEntry] = []
    private var next: StoreCursor?
    /// The place to continue from, and the variant up to which the group there was listed.
    private var place: Int
    private var last: [UInt8]?

    /// The shard to begin with.
    let firstShard: Int
    /// Whether no more is needed.
    var isFull: Bool { next != nil }
    /// What was collected.
    var page: StorePage { StorePage(listed: listed, next: next) }

    /// The page that follows a place.
    init(after cursor: StoreCursor?, limit: Int) {
        self.limit = max(1, limit)
        let number = cursor?.parts?.number ?? 0
        firstShard = Int(truncatingIfNeeded: number >> 32)
        place = Int(truncatingIfNeeded: number & 0xFFFF_FFFF)
        last = cursor?.parts?.bytes
    }

    /// Adds the groups of the next shard.
    mutating func add(_ groups: [GroupTable.Group], ofShard shard: Int) {
        while place < groups.count {
            let entries = groups[place].entries.sorted {
                $0.variant.bytes.lexicographicallyPrecedes($1.variant.bytes)
            }
            for entry in entries {
                let variant = entry.variant.bytes
                if let last, !last.lexicographicallyPrecedes(variant) { continue }
                if listed.count == limit, let end = listed.last {
                    // `end` is here or at an earlier place; a cursor with no bytes at this place would list this variant again.
                    next = StoreCursor(number: lastNumber, bytes: end.entry.variant.bytes)
                    return
                }
                listed.append(ListedEntry(entry: entry, hits: nil, bytes: MemoryLimits.cost(entry)))
                lastNumber = UInt64(truncatingIfNeeded: shard) << 32 | UInt64(truncatingIfNeeded: place)
            }
            last = nil
            place += 1
        }
        (place, last) = (0, nil)
    }

    /// The shard and place of the last listed entry.
    private var lastNumber: UInt64 = 0
}
