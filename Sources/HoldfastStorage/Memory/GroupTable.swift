// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// One committed variant in memory.
struct MemoryRecord: Sendable {
    /// What a lookup returns; contains ``held``.
    let entry: StoredEntry
    let held: ResidentBody

    /// Its handle in ``MemoryAccounting``.
    var handle: SlotHandle { held.handle }

    init(_ entry: StoredEntry, held: ResidentBody) {
        self.entry = entry.changed(held: held)
        self.held = held
    }

    /// The record of an entry that a lookup returned.
    init?(_ shown: StoredEntry) {
        guard let held = shown.held else { return nil }
        (entry, self.held) = (shown, held)
    }
}

/// Groups of variants by primary key: open addressing over 8-byte buckets, with the groups in a separate array.
///
/// A group keeps its place from its first record to its last. The caller hashes: the top bits of a hash have chosen the table, its
/// low bits choose the bucket, and 32 bits in between are compared before any key is.
struct GroupTable: Sendable {
    /// All variants of one key.
    struct Group: Sendable {
        let key: StoreKey
        let hash: UInt64
        /// What a lookup returns, newest first; empty at a free place.
        let entries: [StoredEntry]
        /// The handle of the only variant; ``SlotHandle/none`` if there are several.
        let onlyHandle: SlotHandle

        static let free = Group(key: StoreKey([]), hash: 0, records: [])

        init(key: StoreKey, hash: UInt64, records: [MemoryRecord]) {
            (self.key, self.hash) = (key, hash)
            entries = records.map(\.entry)
            onlyHandle = records.count == 1 ? records[0].handle : .none
            for record in records { record.held.setSiblings(records.count > 1) }
        }

        /// The records, newest first.
        var records: [MemoryRecord] { entries.compactMap { MemoryRecord($0) } }
    }

    private static let empty: UInt64 = 0

    /// The upper half: 32 bits of the hash; the lower half: the place plus 1.
    private var buckets: [UInt64] = []
    private var mask = -1
    private var free: [Int] = []
    private var keys = 0
    /// The groups by place.
    private(set) var groups: [Group] = []

    /// The place of a key's group.
    func place(of key: StoreKey, _ hash: UInt64) -> Int? {
        guard mask >= 0 else { return nil }
        let fragment = Self.fragment(hash)
        var index = Int(truncatingIfNeeded: hash) & mask
        while true {
            let bucket = buckets[index]
            if bucket == Self.empty { return nil }
            if bucket & ~0xFFFF_FFFF == fragment {
                let place = Int(truncatingIfNeeded: bucket & 0xFFFF_FFFF) - 1
                if groups[place].hash == hash, groups[place].key == key { return place }
            }
            index = (index + 1) & mask
        }
    }

    /// The records of a key, newest first.
    func records(of key: StoreKey, _ hash: UInt64) -> [MemoryRecord] {
        place(of: key, hash).map { groups[$0].records } ?? []
    }

    /// The places of all groups with this hash: nearly always at most one.
    func places(hash: UInt64) -> [Int] {
        guard mask >= 0 else { return [] }
        var places: [Int] = []
        var index = Int(truncatingIfNeeded: hash) & mask
        while buckets[index] != Self.empty {
            let place = Int(truncatingIfNeeded: buckets[index] & 0xFFFF_FFFF) - 1
            if groups[place].hash == hash { places.append(place) }
            index = (index + 1) & mask
        }
        return places
    }

    /// Replaces all records of the key; none: the key is removed.
    mutating func replace(_ key: StoreKey, hash: UInt64, with records: [MemoryRecord]) {
        if let place = place(of: key, hash) {
            if records.isEmpty { return remove(place, hash: hash) }
            groups[place] = Group(key: groups[place].key, hash: hash, records: records)
        } else if !records.isEmpty {
            let group = Group(key: key, hash: hash, records: records)
            let place = free.popLast() ?? groups.count
            if place == groups.count { groups.append(group) } else { groups[place] = group }
            keys += 1
            // At least half of the buckets stay empty, so that a search is short.
            if 2 * keys > buckets.count { grow() } else { enter(place, hash: hash) }
        }
    }

    /// Removes everything.
    mutating func removeAll() {
        self = GroupTable()
    }

    private mutating func remove(_ place: Int, hash: UInt64) {
        groups[place] = .free
        free.append(place)
        keys -= 1
        var hole = Int(truncatingIfNeeded: hash) & mask
        while Int(truncatingIfNeeded: buckets[hole] & 0xFFFF_FFFF) - 1 != place { hole = (hole + 1) & mask }
        // Later buckets move up, unless that would put them before their own place.
        var index = hole
        while true {
            index = (index + 1) & mask
            let bucket = buckets[index]
            if bucket == Self.empty { break }
            let home = Int(truncatingIfNeeded: groups[Int(truncatingIfNeeded: bucket & 0xFFFF_FFFF) - 1].hash) & mask
            if (index - home) & mask >= (index - hole) & mask {
                buckets[hole] = bucket
                hole = index
            }
        }
        buckets[hole] = Self.empty
    }

    private mutating func grow() {
        let count = max(16, 2 * buckets.count)
        buckets = [UInt64](repeating: Self.empty, count: count)
        mask = count - 1
        for place in groups.indices where !groups[place].entries.isEmpty { enter(place, hash: groups[place].hash) }
    }

    private mutating func enter(_ place: Int, hash: UInt64) {
        var index = Int(truncatingIfNeeded: hash) & mask
        while buckets[index] != Self.empty { index = (index + 1) & mask }
        buckets[index] = Self.fragment(hash) | UInt64(truncatingIfNeeded: place + 1)
    }

    private static func fragment(_ hash: UInt64) -> UInt64 { hash << 8 & ~0xFFFF_FFFF }
}
