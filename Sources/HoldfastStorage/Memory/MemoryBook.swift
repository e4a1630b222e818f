// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// What all changes of a ``MemoryStore`` share under one lock.
struct MemoryBook: Sendable {
    var ledger: MemoryLedger
    /// What was counted of changes; the rest is counted elsewhere.
    var counts = StoreStatistics()
    var isClosed = false
    /// Entries that left the ledger and lie in the shards still; none while the lock is free.
    var leaving: [MemoryLedger.Leaving] = []
    /// Records taken out, to be freed once the lock is.
    var gone: [MemoryRecord] = []
    private var tickets: [SlotTicket] = []
    private var lastVersion: UInt64 = 0

    /// A book of nothing.
    init(ledger: MemoryLedger) {
        self.ledger = ledger
    }

    /// Hands out the records taken out since the last call; from here on no snapshot opens their bodies.
    mutating func takeGone() -> [MemoryRecord] {
        for record in gone { record.held.setGone() }
        defer { gone.removeAll() }
        return gone
    }

    /// A version higher than all before.
    mutating func nextVersion() -> StoredEntry.Version {
        lastVersion &+= 1
        return StoredEntry.Version(number: lastVersion)
    }

    /// Tells the policy of the uses that a shard noted.
    mutating func passOn(_ noted: MemoryShards.NotePlace, of shards: MemoryShards) {
        if let now = shards.takeNotes(noted, &tickets) { ledger.latestNow = max(ledger.latestNow, now) }
        for ticket in tickets { ledger.use(ticket, &leaving) }
        tickets.removeAll(keepingCapacity: true)
    }
}

/// The numbers a ``MemoryStore`` was made with, and what follows from them.
struct MemoryLimits: Sendable {
    let capacity: Int
    let entrySize: Int
    let variants: Int

    init(capacity: Int, entrySize: Int?, variants: Int) {
        self.capacity = max(0, capacity)
        self.entrySize = min(max(0, entrySize ?? self.capacity / 4), self.capacity)
        self.variants = max(1, variants)
    }

    /// The bytes that pins may hold.
    var pins: Int { capacity / 2 }

    /// What an entry counts.
    static func cost(_ key: StoreKey, _ variant: StoreKey, _ description: EntryDescription, body: Int) -> Int {
        MemoryStore.overhead + key.bytes.count + variant.bytes.count + description.byteCount + body
    }

    /// What an entry counts.
    static func cost(_ entry: StoredEntry) -> Int {
        cost(entry.key, entry.variant, entry.description, body: entry.bodyLength)
    }

    /// Throws `.tooLarge` unless an entry may take so many bytes, none of the numbers being negative.
    func check(_ bytes: Int, and more: Int = 0) throws(StoreError) {
        if bytes > entrySize || more > entrySize - bytes {
            throw StoreError(.tooLarge, "The entry is larger than the \(entrySize) bytes that one entry may take.")
        }
    }
}
