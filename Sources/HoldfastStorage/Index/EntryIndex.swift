// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The committed entries of a store, grouped by primary key, in the order in which they should leave.
///
/// A group is replaced as a whole, so that all variants of a key change at one instant. The index judges nothing about
/// sizes: what a group costs is told by the store.
struct EntryIndex<Body: Sendable>: Sendable {
    /// One variant.
    struct Record: Sendable {
        var entry: StoredEntry
        var body: Body
    }

    /// What the store says of a group.
    struct Weight: Sendable {
        /// Bytes against the capacity.
        var cost: Int
        /// The part of the cost that pins hold fast.
        var pinnedCost: Int
        /// Whether anything of the group may be evicted.
        var isEvictable: Bool
        /// Past this instant something of the group should leave before anything that is of use.
        var uselessAfter: StoreInstant
    }

    private struct Group: Sendable {
        let key: StoreKey
        var records: [Record]
        var weight: Weight
    }

    private var groups: [Group?] = []
    private var free: [Int] = []
    private var slots: [StoreKey: Int] = [:]
    private var recency = RecencyList()
    private var useless = UselessQueue()

    /// The cost of all groups.
    private(set) var cost = 0
    /// The pinned cost of all groups.
    private(set) var pinnedCost = 0
    /// How many records there are.
    private(set) var count = 0

    /// The variants of `key`, newest first.
    func records(of key: StoreKey) -> [Record] {
        slots[key].flatMap { groups[$0]?.records } ?? []
    }

    /// The record of one version, if it is still there.
    func record(of entry: StoredEntry) -> Record? {
        records(of: entry.key).first { $0.entry.version == entry.version && $0.entry.variant == entry.variant }
    }

    /// What was last said of the group of `key`.
    func weight(of key: StoreKey) -> Weight? {
        slots[key].flatMap { groups[$0]?.weight }
    }

    /// Every record, in no order.
    var allRecords: [Record] {
        groups.flatMap { $0?.records ?? [] }
    }

    /// One more than the highest slot.
    var slotCount: Int { groups.count }

    /// Where the group of `key` stands; it stays there until it is removed.
    func slot(of key: StoreKey) -> Int? { slots[key] }

    /// The variants in a slot, newest first; none where it is free.
    func records(inSlot slot: Int) -> [Record] { groups[slot]?.records ?? [] }

    /// Every key, in no order.
    var keys: [StoreKey] { Array(slots.keys) }

    /// Notes that `key` was used.
    mutating func touch(_ key: StoreKey) {
        guard let slot = slots[key], recency.contains(slot) else { return }
        recency.touch(slot)
    }

    /// Replaces the whole group of `key`, which keeps its place in the order; a group without records is removed.
    mutating func replace(_ key: StoreKey, with records: [Record], weight: Weight) {
        if records.isEmpty { return remove(key) }
        let slot = slots[key] ?? newSlot(for: key)
        account(groups[slot], by: -1)
        let group = Group(key: key, records: records, weight: weight)
        account(group, by: 1)
        groups[slot] = group
        if weight.isEvictable {
            if !recency.contains(slot) { recency.touch(slot) }
            useless.set(slot, weight.uselessAfter)
        } else {
            recency.remove(slot)
            useless.remove(slot)
        }
    }

    /// Removes the whole group of `key`.
    mutating func remove(_ key: StoreKey) {
        guard let slot = slots.removeValue(forKey: key) else { return }
        account(groups[slot], by: -1)
        groups[slot] = nil
        recency.remove(slot)
        useless.remove(slot)
        free.append(slot)
    }

    /// Removes everything.
    mutating func removeAll() {
        self = EntryIndex()
    }

    /// The key from whose group something should leave next: of no use at `now`, else used longest ago.
    mutating func victim(now: StoreInstant) -> StoreKey? {
        (useless.first(before: now) ?? recency.last).flatMap { groups[$0]?.key }
    }

    private mutating func newSlot(for key: StoreKey) -> Int {
        let slot: Int
        if let reused = free.popLast() {
            slot = reused
        } else {
            slot = groups.count
            groups.append(nil)
        }
        slots[key] = slot
        return slot
    }

    private mutating func account(_ group: Group?, by sign: Int) {
        guard let group else { return }
        cost += sign * group.weight.cost
        pinnedCost += sign * group.weight.pinnedCost
        count += sign * group.records.count
    }
}
