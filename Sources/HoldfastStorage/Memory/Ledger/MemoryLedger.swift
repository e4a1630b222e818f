// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Which bytes of a ``MemoryStore`` belong to whom, and who leaves: every step keeps their sum within the capacity.
///
/// Bytes are held by entries that the eviction policy keeps, by pinned ones, by those being written, and by *guests*: entries
/// that the policy did not admit and that stay until their room is needed. The policy's capacity is what pins and writers leave
/// of the store's, less a ``Headroom``. A ledger knows entries by slots and hashes alone; steps that make entries leave add
/// them to `leaving`, and the store takes them out of its tables.
struct MemoryLedger: Sendable {
    typealias Slot = UInt32

    /// An entry that has left the ledger.
    struct Leaving: Sendable, Hashable {
        /// What its record bears.
        let ticket: SlotTicket
        /// The hash of its primary key.
        let hash: UInt64
    }

    /// Who holds a slot's bytes.
    enum Standing: UInt8, Sendable {
        case free, kept, guest, pinned
    }

    /// What is known of an entry.
    struct Owner: Sendable {
        var hash: UInt64 = 0
        /// The key under which the policy knows the entry.
        var policyKey: UInt64 = 0
        var cost = 0
        var life: UInt32 = 0
        var standing = Standing.free
    }

    let capacity: Int
    private let makePolicy: @Sendable (_ capacity: Int) -> any EvictionPolicy
    var policy: any EvictionPolicy
    var owners: [Owner] = []
    var free: [Slot] = []
    var guests = SlotList()
    var guestBytes = 0
    var guestCount = 0
    var pinnedBytes = 0
    var pinnedCount = 0
    var useless = UselessQueue()
    var headroom: Headroom
    var writers = WritersInFlight()
    /// Kept between steps so that they allocate nothing.
    var victims: [Slot] = []
    /// The latest instant a caller told of.
    var latestNow = StoreInstant(milliseconds: .min)
    var evicted = 0

    /// An empty ledger over a policy of its own.
    init(capacity: Int, makePolicy: @escaping @Sendable (_ capacity: Int) -> any EvictionPolicy) {
        self.capacity = max(0, capacity)
        self.makePolicy = makePolicy
        policy = makePolicy(self.capacity)
        headroom = Headroom(capacity: self.capacity)
    }

    /// Bytes held in all.
    var used: Int { policy.used + guestBytes + pinnedBytes + writers.reserved }
    /// Entries held, those being written left out.
    var count: Int { policy.count + guestCount + pinnedCount }

    /// The owner of a ticket's slot, unless the ticket is of an earlier life.
    func owner(of ticket: SlotTicket) -> Owner? {
        guard ticket.slot < owners.count else { return nil }
        let owner = owners[Int(ticket.slot)]
        return owner.life == ticket.life && owner.standing != .free ? owner : nil
    }

    // MARK: Entries

    /// Takes in an entry for whose bytes there is room.
    ///
    /// - Parameters:
    ///   - hash: of its primary key.
    ///   - policyKey: a hash of primary key and variant.
    mutating func enter(
        hash: UInt64,
        policyKey: UInt64,
        cost: Int,
        uselessAfter: StoreInstant,
        isPinned: Bool,
        _ leaving: inout [Leaving]
    ) -> SlotTicket {
        let slot = free.popLast() ?? newSlot()
        let life = owners[Int(slot)].life &+ 1
        owners[Int(slot)] = Owner(hash: hash, policyKey: policyKey, cost: cost, life: life, standing: .free)
        place(slot, isPinned: isPinned, uselessAfter: uselessAfter, &leaving)
        return SlotTicket(slot: slot, life: life)
    }

    /// Gives an entry another size, for which there is room; counts as a use.
    mutating func change(
        _ ticket: SlotTicket,
        cost: Int,
        uselessAfter: StoreInstant,
        isPinned: Bool,
        _ leaving: inout [Leaving]
    ) {
        guard let owner = owner(of: ticket) else { return }
        let slot = ticket.slot
        guard owner.standing == .kept, !isPinned else {
            lift(slot)
            owners[Int(slot)].cost = cost
            return place(slot, isPinned: isPinned, uselessAfter: uselessAfter, &leaving)
        }
        useless.set(Int(slot), uselessAfter)
        policy.use(slot)
        evictUseless(for: cost - owner.cost, sparing: slot, &leaving)
        owners[Int(slot)].cost = cost
        policy.resize(slot, to: cost, victims: &victims)
        settle(offered: slot, &leaving)
        fit(&leaving)
    }

    /// Pins an entry or releases it.
    mutating func setPinned(
        _ isPinned: Bool,
        _ ticket: SlotTicket,
        uselessAfter: StoreInstant,
        _ leaving: inout [Leaving]
    ) {
        guard owner(of: ticket) != nil else { return }
        lift(ticket.slot)
        place(ticket.slot, isPinned: isPinned, uselessAfter: uselessAfter, &leaving)
    }

    /// Takes out an entry that the store gave up.
    mutating func remove(_ ticket: SlotTicket) {
        guard owner(of: ticket) != nil else { return }
        lift(ticket.slot)
        release(ticket.slot)
    }

    /// Counts a use; a guest that is used is offered to the policy again, as if it had been fetched anew.
    mutating func use(_ ticket: SlotTicket, _ leaving: inout [Leaving]) {
        guard let owner = owner(of: ticket) else { return }
        switch owner.standing {
        case .kept: policy.use(ticket.slot)
        case .guest:
            policy.insert(ticket.slot, key: owner.policyKey, size: owner.cost, victims: &victims)
            if victims.contains(ticket.slot) {
                victims.removeAll { $0 == ticket.slot }
            } else {
                leaveGuests(ticket.slot)
                owners[Int(ticket.slot)].standing = .kept
            }
            settle(offered: nil, &leaving)
        case .free, .pinned: break
        }
    }

    /// Forgets every entry and every writer.
    mutating func removeAll() {
        var emptied = MemoryLedger(capacity: capacity, makePolicy: makePolicy)
        emptied.evicted = evicted
        self = emptied
    }

    private mutating func newSlot() -> Slot {
        owners.append(Owner())
        return Slot(truncatingIfNeeded: owners.count - 1)
    }

    /// Gives a slot that stands nowhere its place.
    private mutating func place(
        _ slot: Slot,
        isPinned: Bool,
        uselessAfter: StoreInstant,
        _ leaving: inout [Leaving]
    ) {
        let owner = owners[Int(slot)]
        if isPinned {
            owners[Int(slot)].standing = .pinned
            pinnedBytes += owner.cost
            pinnedCount += 1
            return fit(&leaving)
        }
        fit(&leaving)
        evictUseless(for: owner.cost, sparing: slot, &leaving)
        useless.set(Int(slot), uselessAfter)
        owners[Int(slot)].standing = .kept
        policy.insert(slot, key: owner.policyKey, size: owner.cost, victims: &victims)
        settle(offered: slot, &leaving)
    }

    /// Takes a slot from where it stands; its owner stays.
    private mutating func lift(_ slot: Slot) {
        let owner = owners[Int(slot)]
        switch owner.standing {
        case .kept: policy.remove(slot)
        case .guest: leaveGuests(slot)
        case .pinned:
            pinnedBytes -= owner.cost
            pinnedCount -= 1
        case .free: break
        }
        owners[Int(slot)].standing = .free
        useless.remove(Int(slot))
    }

    /// Has the store take a slot out and use it again.
    mutating func evict(_ slot: Slot, _ leaving: inout [Leaving]) {
        lift(slot)
        let owner = owners[Int(slot)]
        leaving.append(Leaving(ticket: SlotTicket(slot: slot, life: owner.life), hash: owner.hash))
        evicted &+= 1
        release(slot)
    }

    private mutating func release(_ slot: Slot) {
        free.append(slot)
    }

    private mutating func leaveGuests(_ slot: Slot) {
        guests.remove(slot)
        guestBytes -= owners[Int(slot)].cost
        guestCount -= 1
    }

    /// Deals with ``victims``: they leave, but for the entry that was offered, which becomes a guest.
    mutating func settle(offered: Slot?, _ leaving: inout [Leaving]) {
        for slot in victims {
            if slot == offered {
                owners[Int(slot)].standing = .guest
                guests.prepend(slot)
                guestBytes += owners[Int(slot)].cost
                guestCount += 1
            } else {
                // The policy has let go of it already.
                evict(slot, &leaving)
            }
        }
        victims.removeAll(keepingCapacity: true)
    }
}
