// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Counts which bytes of a ``MemoryStore`` are used for what, and decides what leaves: every step keeps their sum within the
/// capacity.
///
/// Bytes are held by entries that the eviction policy keeps, by pinned ones, by those being written, and by those on
/// *probation*: entries that the policy did not admit and that stay until their space is needed. The policy's capacity is what
/// pins and writers leave of the store's, less a ``Headroom``. It knows entries only by slots and hashes; steps that make
/// entries leave add them to `evictions`, and the store removes them from its tables.
struct MemoryAccounting: Sendable {
    typealias Slot = UInt32

    /// An entry that was evicted.
    struct Eviction: Sendable, Hashable {
        /// The handle in its record.
        let handle: SlotHandle
        /// The hash of its primary key.
        let hash: UInt64
    }

    /// What holds a slot's bytes.
    enum Residence: UInt8, Sendable {
        case free, kept, probation, pinned
    }

    /// What is known about an entry.
    struct Owner: Sendable {
        var hash: UInt64 = 0
        /// The entry's key in the policy.
        var policyKey: UInt64 = 0
        var cost = 0
        var life: UInt32 = 0
        var residence = Residence.free
    }

    let capacity: Int
    private let makePolicy: @Sendable (_ capacity: Int) -> any EvictionPolicy
    var policy: any EvictionPolicy
    var owners: [Owner] = []
    var free: [Slot] = []
    var probation = SlotList()
    var probationBytes = 0
    var pinnedBytes = 0
    var expiries = ExpiryQueue()
    var headroom: Headroom
    var writers = WritersInFlight()
    /// Kept between steps to avoid allocations.
    var victims: [Slot] = []
    /// The latest instant that a caller passed.
    var latestNow = StoreInstant(milliseconds: .min)
    var evicted = 0
    /// Evicted entries that the store has not removed from its tables yet.
    var evictions: [Eviction] = []

    /// No entries, with its own policy.
    init(capacity: Int, makePolicy: @escaping @Sendable (_ capacity: Int) -> any EvictionPolicy) {
        self.capacity = max(0, capacity)
        self.makePolicy = makePolicy
        policy = makePolicy(self.capacity)
        headroom = Headroom(capacity: self.capacity)
    }

    /// All bytes held.
    var used: Int { policy.used + probationBytes + pinnedBytes + writers.reserved }
    /// The entries held, without those being written.
    var count: Int { owners.count - free.count }

    /// The owner of a handle's slot, unless the handle is from an earlier life.
    func owner(of handle: SlotHandle) -> Owner? {
        guard handle.slot < owners.count else { return nil }
        let owner = owners[Int(handle.slot)]
        return owner.life == handle.life && owner.residence != .free ? owner : nil
    }

    // MARK: Entries

    /// Adds an entry for whose bytes there is room.
    ///
    /// - Parameters:
    ///   - hash: the hash of its primary key.
    ///   - policyKey: a hash of primary key and variant.
    mutating func enter(
        hash: UInt64,
        policyKey: UInt64,
        cost: Int,
        uselessAfter: StoreInstant,
        isPinned: Bool
    ) -> SlotHandle {
        let slot = free.popLast() ?? Slot(truncatingIfNeeded: owners.count)
        if slot == owners.count { owners.append(Owner()) }
        let life = owners[Int(slot)].life &+ 1
        owners[Int(slot)] = Owner(hash: hash, policyKey: policyKey, cost: cost, life: life, residence: .free)
        place(slot, isPinned: isPinned, uselessAfter: uselessAfter)
        return SlotHandle(slot: slot, life: life)
    }

    /// Changes the size of an entry, for which there is room, and whether it is pinned; counts as a use.
    mutating func change(
        _ handle: SlotHandle,
        cost: Int,
        uselessAfter: StoreInstant,
        isPinned: Bool
    ) {
        guard let owner = owner(of: handle) else { return }
        let slot = handle.slot
        guard owner.residence == .kept, !isPinned else {
            lift(slot)
            owners[Int(slot)].cost = cost
            return place(slot, isPinned: isPinned, uselessAfter: uselessAfter)
        }
        expiries.set(Int(slot), instant: uselessAfter)
        policy.use(slot)
        evictExpired(for: cost - owner.cost, sparing: slot)
        owners[Int(slot)].cost = cost
        policy.resize(slot, to: cost, victims: &victims)
        applyVictims(offered: slot)
        fit()
    }

    /// Removes an entry that the store gave up.
    mutating func remove(_ handle: SlotHandle) {
        guard owner(of: handle) != nil else { return }
        lift(handle.slot)
        free.append(handle.slot)
    }

    /// Counts a use; one on probation is offered to the policy again, as if it had been fetched again.
    mutating func use(_ handle: SlotHandle) {
        guard let owner = owner(of: handle) else { return }
        switch owner.residence {
        case .kept: policy.use(handle.slot)
        case .probation:
            policy.insert(handle.slot, key: owner.policyKey, size: owner.cost, victims: &victims)
            if victims.contains(handle.slot) {
                victims.removeAll { $0 == handle.slot }
            } else {
                leaveProbation(handle.slot)
                owners[Int(handle.slot)].residence = .kept
            }
            applyVictims(offered: nil)
        case .free, .pinned: break
        }
    }

    /// Removes every entry and every writer.
    mutating func removeAll() {
        var emptied = MemoryAccounting(capacity: capacity, makePolicy: makePolicy)
        emptied.evicted = evicted
        self = emptied
    }

    /// Places a slot that is placed nowhere.
    private mutating func place(
        _ slot: Slot,
        isPinned: Bool,
        uselessAfter: StoreInstant
    ) {
        let owner = owners[Int(slot)]
        if isPinned {
            owners[Int(slot)].residence = .pinned
            pinnedBytes += owner.cost
            return fit()
        }
        fit()
        evictExpired(for: owner.cost, sparing: slot)
        expiries.set(Int(slot), instant: uselessAfter)
        owners[Int(slot)].residence = .kept
        policy.insert(slot, key: owner.policyKey, size: owner.cost, victims: &victims)
        applyVictims(offered: slot)
    }

    /// Removes a slot from its current place; its owner stays.
    private mutating func lift(_ slot: Slot) {
        let owner = owners[Int(slot)]
        switch owner.residence {
        case .kept: policy.remove(slot)
        case .probation: leaveProbation(slot)
        case .pinned:
            pinnedBytes -= owner.cost
        case .free: break
        }
        owners[Int(slot)].residence = .free
        expiries.remove(Int(slot))
    }

    /// Makes the store remove a slot's entry, and frees the slot.
    mutating func evict(_ slot: Slot) {
        lift(slot)
        let owner = owners[Int(slot)]
        evictions.append(Eviction(handle: SlotHandle(slot: slot, life: owner.life), hash: owner.hash))
        evicted &+= 1
        free.append(slot)
    }

    private mutating func leaveProbation(_ slot: Slot) {
        probation.remove(slot)
        probationBytes -= owners[Int(slot)].cost
    }

    /// Handles ``victims``: they leave, except the entry that was offered, which is then on probation.
    mutating func applyVictims(offered: Slot?) {
        for slot in victims {
            if slot == offered {
                owners[Int(slot)].residence = .probation
                probation.prepend(slot)
                probationBytes += owners[Int(slot)].cost
            } else {
                // The policy has already dropped it.
                evict(slot)
            }
        }
        victims.removeAll(keepingCapacity: true)
    }
}

/// Making room: useless entries leave first, then those on probation, then those that the policy chooses.
extension MemoryAccounting {
    /// Ensures that `count` more bytes can be held.
    ///
    /// Nothing leaves in vain: if there cannot be enough room, all entries stay.
    ///
    /// - Throws: `.noSpace` if pins and writers leave too little.
    mutating func makeRoom(_ count: Int) throws(StoreError) {
        guard count > 0 else { return }
        guard count <= capacity - writers.reserved - pinnedBytes else {
            throw StoreError(.noSpace, "Pinned entries and entries being written leave no room; try again later.")
        }
        let target = target(inFlight: writers.reserved + count)
        while used > capacity - count || policy.used > target, let slot = expiries.first(before: latestNow) {
            evict(Slot(truncatingIfNeeded: slot))
        }
        setPolicyCapacity(target)
        evictProbation(until: capacity - count)
    }

    /// Begins to write an entry; there is room for its bytes so far.
    mutating func begin(_ writer: WritersInFlight.Writer) -> UInt64 {
        headroom.noteBegin(inFlight: writers.reserved)
        let id = writers.begin(writer)
        headroom.note(inFlight: writers.reserved)
        return id
    }

    /// Reserves bytes for a writer; there is room for them.
    mutating func reserve(_ count: Int, for id: UInt64) {
        writers.reserve(count, for: id)
        headroom.note(inFlight: writers.reserved)
    }

    /// Evicts until at most `bytes` are held, as far as pins and writers allow.
    mutating func trim(to bytes: Int) {
        while used > bytes, let slot = expiries.first(before: latestNow) {
            evict(Slot(truncatingIfNeeded: slot))
        }
        evictProbation(until: bytes)
        if used > bytes {
            // In two steps, in case `bytes` is far below zero.
            let rest = max(0, bytes - (used - policy.used))
            setPolicyCapacity(min(rest, policy.used))
        }
        fit()
    }

    /// Sets the policy's capacity to its current share.
    mutating func fit() {
        setPolicyCapacity(target(inFlight: writers.reserved))
        evictProbation(until: capacity)
    }

    /// Evicts useless entries as long as the policy would have to evict something for `count` more bytes.
    mutating func evictExpired(for count: Int, sparing spared: Slot) {
        while count > policy.capacity - policy.used, let slot = expiries.first(before: latestNow) {
            if slot == Int(spared) { return }
            evict(Slot(truncatingIfNeeded: slot))
        }
    }

    private func target(inFlight bytes: Int) -> Int {
        max(0, capacity - pinnedBytes - max(bytes, headroom.bytes))
    }

    private mutating func setPolicyCapacity(_ bytes: Int) {
        guard bytes != policy.capacity else { return }
        policy.setCapacity(bytes, victims: &victims)
        applyVictims(offered: nil)
    }

    private mutating func evictProbation(until bytes: Int) {
        while used > bytes, let slot = probation.last { evict(slot) }
    }
}

/// How many bytes a store keeps free of its eviction policy's entries, so that entries being written evict nothing before the
/// policy was asked about them.
///
/// The most that was being written at once recently, but at most an eighth of the capacity: writes beyond that evict early.
struct Headroom: Sendable {
    /// The number of entries begun after which a peak is forgotten; at most twice as many.
    static let window = 256

    private let limit: Int
    private var current = 0
    private var previous = 0
    private var begun = 0

    /// No headroom yet, for a store with this capacity.
    init(capacity: Int) { limit = max(0, capacity) / 8 }

    /// The bytes to keep free.
    var bytes: Int { max(current, previous) }

    /// Notes how many bytes are being written at once.
    mutating func note(inFlight bytes: Int) {
        current = max(current, min(bytes, limit))
    }

    /// Notes that one more entry is being written; `bytes` are in flight without it.
    mutating func noteBegin(inFlight bytes: Int) {
        begun += 1
        guard begun >= Self.window else { return }
        begun = 0
        previous = current
        current = 0
        note(inFlight: bytes)
    }
}
