// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// What a ``MemoryStore`` knows: entries, writers and the bytes they hold; every step keeps the bytes within the capacity.
struct MemoryState: Sendable {
    typealias Index = EntryIndex<ByteChunk>

    /// Bytes counted for an entry beside its own, for the tables it stands in.
    static let overhead = 256

    let maximumEntrySize: Int
    let maximumVariants: Int
    var index = Index()
    var writers = WritersInFlight()
    private var counts = StoreStatistics()
    private var lastVersion: UInt64 = 0
    private var latestNow = StoreInstant(milliseconds: .min)
    private(set) var isClosed = false

    init(capacity: Int, maximumEntrySize: Int?, maximumVariants: Int) {
        counts.capacity = max(0, capacity)
        self.maximumEntrySize = min(max(0, maximumEntrySize ?? counts.capacity / 4), counts.capacity)
        self.maximumVariants = max(1, maximumVariants)
    }

    var used: Int { index.cost + writers.reserved }

    var statistics: StoreStatistics {
        var statistics = counts
        statistics.entryCount = index.count
        statistics.bytesUsed = used
        return statistics
    }

    static func cost(_ key: StoreKey, _ variant: StoreKey, _ description: EntryDescription, body: Int) -> Int {
        overhead + key.bytes.count + variant.bytes.count + description.byteCount + body
    }

    static func cost(_ entry: StoredEntry) -> Int {
        cost(entry.key, entry.variant, entry.description, body: entry.bodyLength)
    }

    mutating func countRead(_ count: Int) { counts.bytesRead &+= count }

    mutating func lookUp(_ key: StoreKey, now: StoreInstant) -> [StoredEntry] {
        latestNow = now
        let entries = index.records(of: key).map(\.entry)
        counts.lookups &+= 1
        if !entries.isEmpty {
            counts.lookupsFound &+= 1
            index.touch(key)
        }
        return entries
    }

    mutating func begin(
        _ key: StoreKey,
        _ variant: StoreKey,
        _ description: EntryDescription,
        expectedLength: Int?,
        now: StoreInstant
    ) throws(StoreError) -> UInt64 {
        try checkOpen()
        latestNow = now
        let cost = Self.cost(key, variant, description, body: 0)
        guard cost <= maximumEntrySize, max(0, expectedLength ?? 0) <= maximumEntrySize - cost else {
            throw tooLarge
        }
        try makeRoom(cost)
        return writers.begin(.init(key: key, variant: variant, description: description, reserved: cost))
    }

    mutating func reserve(_ count: Int, for id: UInt64) throws(StoreError) {
        try checkOpen()
        guard let writer = writers[id] else { throw MemoryState.ended }
        guard count <= maximumEntrySize - writer.reserved else { throw tooLarge }
        try makeRoom(count)
        writers.reserve(count, for: id)
    }

    mutating func commit(
        _ id: UInt64,
        _ newDescription: EntryDescription?,
        body: ByteChunk,
        now: StoreInstant
    ) throws(StoreError) -> StoredEntry {
        try checkOpen()
        latestNow = now
        guard let writer = writers[id] else { throw MemoryState.ended }
        if writer.isSuperseded {
            throw StoreError(.superseded, "The key was invalidated while this entry was written; fetch it again.")
        }
        let description = newDescription ?? writer.description
        let cost = Self.cost(writer.key, writer.variant, description, body: body.count)
        guard cost <= maximumEntrySize else { throw tooLarge }
        try makeRoom(cost - writer.reserved)
        var records = index.records(of: writer.key)
        let older = records.firstIndex { $0.entry.variant == writer.variant }.map { records.remove(at: $0) }
        if records.count >= maximumVariants {
            guard let oldest = records.lastIndex(where: { !$0.entry.isPinned }) else {
                throw StoreError(.noSpace, "Every variant of this key is pinned; release one to store another.")
            }
            records.remove(at: oldest)
            counts.entriesEvicted &+= 1
        }
        writers.end(id)
        let olderPinnedCost = older.map { $0.entry.isPinned ? Self.cost($0.entry) : 0 } ?? 0
        let entry = StoredEntry(
            key: writer.key,
            variant: writer.variant,
            version: nextVersion(),
            description: description,
            bodyLength: body.count,
            storedAt: now,
            // A pin means the resource, so it outlives a version as far as the room for pins allows.
            isPinned: olderPinnedCost > 0 && index.pinnedCost - olderPinnedCost + cost <= counts.capacity / 2
        )
        replace(writer.key, [.init(entry: entry, body: body)] + records)
        index.touch(writer.key)
        counts.entriesWritten &+= 1
        counts.bytesWritten &+= body.count
        return entry
    }

    mutating func replaceDescription(
        of entry: StoredEntry,
        with description: EntryDescription,
        now: StoreInstant
    ) throws(StoreError) -> StoredEntry? {
        try checkOpen()
        latestNow = now
        guard let old = index.record(of: entry) else { return nil }
        let newCost = Self.cost(entry.key, entry.variant, description, body: old.entry.bodyLength)
        guard newCost <= maximumEntrySize else { throw tooLarge }
        let growth = newCost - Self.cost(old.entry)
        // In the order of use it now comes last to leave, so that room is not made at its own cost.
        index.touch(entry.key)
        try makeRoom(growth)
        guard index.record(of: entry) != nil else {
            throw StoreError(.noSpace, "There is no room for the longer description; the entry was evicted.")
        }
        let pinned = old.entry.isPinned && index.pinnedCost + growth <= counts.capacity / 2
        let changed = old.entry.changed(description: description, version: nextVersion(), isPinned: pinned)
        let others = index.records(of: entry.key).filter { $0.entry.version != entry.version }
        replace(entry.key, [.init(entry: changed, body: old.body)] + others)
        return changed
    }

    mutating func setPinned(_ pinned: Bool, _ entry: StoredEntry) throws(StoreError) -> Bool {
        try checkOpen()
        var records = index.records(of: entry.key)
        guard let place = records.firstIndex(where: { $0.entry.version == entry.version }) else { return false }
        if records[place].entry.isPinned == pinned { return true }
        if pinned, index.pinnedCost + Self.cost(records[place].entry) > counts.capacity / 2 { return false }
        records[place].entry = records[place].entry.changed(isPinned: pinned)
        replace(entry.key, records)
        return true
    }

    /// Removes the records of `key` for which `condition` holds and counts them.
    @discardableResult
    mutating func remove(_ key: StoreKey, where condition: (StoredEntry) -> Bool) -> Int {
        let records = index.records(of: key)
        let left = records.filter { !condition($0.entry) }
        if left.count < records.count { replace(key, left) }
        counts.entriesRemoved &+= records.count - left.count
        return records.count - left.count
    }

    mutating func close() {
        isClosed = true
        index.removeAll()
        for id in writers.all.keys { writers.end(id) }
    }

    mutating func trim(to bytes: Int) {
        while used > bytes, evictOne() {}
    }

    func checkOpen() throws(StoreError) {
        if isClosed { throw StoreError(.closed, "The store is closed; open a new one.") }
    }

    static let ended = StoreError(.abandoned, "The writer has already committed or abandoned; start a new one.")
}

extension MemoryState {
    private var tooLarge: StoreError {
        StoreError(.tooLarge, "The entry is larger than the \(maximumEntrySize) bytes that one entry may take.")
    }

    private mutating func nextVersion() -> StoredEntry.Version {
        lastVersion &+= 1
        return StoredEntry.Version(number: lastVersion)
    }

    private mutating func makeRoom(_ count: Int) throws(StoreError) {
        guard count > 0 else { return }
        // Nothing leaves in vain: without hope of enough room all entries stay.
        let hasHope = count <= counts.capacity - writers.reserved - index.pinnedCost
        while count > counts.capacity - used {
            guard hasHope, evictOne() else {
                throw StoreError(.noSpace, "What is pinned or being written leaves no room; try again later.")
            }
        }
    }

    private mutating func evictOne() -> Bool {
        guard let key = index.victim(now: latestNow) else { return false }
        var records = index.records(of: key)
        let candidates = records.indices.filter { !records[$0].entry.isPinned }
        let useless = candidates.last { records[$0].entry.description.uselessAfter < latestNow }
        guard let place = useless ?? candidates.last else { return false }
        records.remove(at: place)
        replace(key, records)
        counts.entriesEvicted &+= 1
        return true
    }

    private mutating func replace(_ key: StoreKey, _ records: [Index.Record]) {
        var weight = Index.Weight(cost: 0, pinnedCost: 0, isEvictable: false, uselessAfter: .distantFuture)
        for record in records {
            let cost = Self.cost(record.entry)
            weight.cost += cost
            if record.entry.isPinned {
                weight.pinnedCost += cost
            } else {
                weight.isEvictable = true
                weight.uselessAfter = min(weight.uselessAfter, record.entry.description.uselessAfter)
            }
        }
        index.replace(key, with: records, weight: weight)
    }
}
