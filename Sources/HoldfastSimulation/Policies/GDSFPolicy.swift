// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastStorage

/// Evicts the entry with the lowest priority: uses per byte, plus the priority of the last evicted entry.
///
/// Greedy-Dual-Size-Frequency of Cherkasova, "Improving WWW proxies performance with Greedy-Dual-Size-Frequency caching policy" (HP
/// Labs 1998), with an equal cost for every miss; among equal priorities, the least recently used entry is evicted. 22 bytes for
/// each entry; every step is O(log n).
///
/// Priorities are rounded to 32 bits, so that the time of the last use fits into the same 8 bytes.
struct GDSFPolicy: StepwiseEviction {
    var capacity: Int
    var sizes = SlotSizes()
    private var heap = RankHeap()
    private var uses: [UInt16] = []
    private var clock: UInt32 = 0
    /// The priority of the last evicted entry.
    private var floor = 0.0
    /// Entries evicted since the floor was 0.
    private var evictions = 0

    /// A policy with this capacity in bytes; a negative number means 0.
    init(capacity: Int) { self.capacity = max(0, capacity) }

    var metadataBytes: Int { sizes.bytes + heap.bytes + uses.capacity * 2 }

    /// Compares the new entry with the others, so that it is its own victim if its priority is the lowest.
    mutating func insert(_ slot: Slot, key: UInt64, size: Int, victims: inout [Slot]) {
        let size = max(0, size)
        guard size <= capacity else { return victims.append(slot) }
        lowerFloor()
        let rank = rank(uses: 1, size: size)
        while used > capacity - size, let least = heap.first {
            guard heap[least] < rank else {
                leaves(rank)
                return victims.append(slot)
            }
            evictOne().map { victims.append($0) }
        }
        enter(slot, size: size, rank: rank)
    }

    mutating func use(_ slot: Slot) {
        guard holds(slot) else { return }
        if uses[Int(slot)] < .max { uses[Int(slot)] += 1 }
        heap.set(slot, rank: rank(uses: uses[Int(slot)], size: sizes[slot]))
    }

    mutating func enter(_ slot: Slot, key: UInt64, size: Int) {
        enter(slot, size: size, rank: rank(uses: 1, size: size))
    }

    mutating func change(_ slot: Slot, to size: Int) {
        sizes.set(slot, size: size)
        heap.set(slot, rank: rank(uses: uses[Int(slot)], size: size))
    }

    mutating func leave(_ slot: Slot) {
        sizes.remove(slot)
        heap.remove(slot)
    }

    mutating func evictOne() -> Slot? {
        guard let slot = heap.first else { return nil }
        leaves(heap[slot])
        leave(slot)
        return slot
    }

    private mutating func enter(_ slot: Slot, size: Int, rank: UInt64) {
        sizes.set(slot, size: size)
        uses.extend(through: slot, with: 0)
        uses[Int(slot)] = 1
        heap.set(slot, rank: rank)
    }

    // MARK: Ranks

    private mutating func leaves(_ rank: UInt64) {
        floor = Self.priority(rank)
        evictions += 1
    }

    private mutating func rank(uses: UInt16, size: Int) -> UInt64 {
        clock &+= 1
        return Self.rank(floor + Double(uses) / Double(max(1, size)), clock: clock)
    }

    /// Subtracts the floor from every priority if it is so high that they lose precision; at most once in as many evictions as
    /// there are entries.
    private mutating func lowerFloor() {
        guard evictions > count, floor * Double(used) > 4_096 * Double(count) else { return }
        heap.replaceRanks { Self.rank(max(0, Self.priority($0) - floor), clock: UInt32(truncatingIfNeeded: $0)) }
        (floor, evictions) = (0, 0)
    }

    /// A number that sorts by priority first, and then by the clock, of which 24 bits are kept.
    ///
    /// The exponent of a priority between 2^-126 and 2^127 takes 8 bits, the fraction 32.
    private static func rank(_ priority: Double, clock: UInt32) -> UInt64 {
        let least = UInt64(1023 - 127) << 52
        let offset = priority.bitPattern > least ? priority.bitPattern - least : 0
        return min(offset >> 20, 0xFF_FFFF_FFFF) << 24 | UInt64(clock & 0xFF_FFFF)
    }

    private static func priority(_ rank: UInt64) -> Double {
        rank >> 24 == 0 ? 0 : Double(bitPattern: (rank >> 24) << 20 + UInt64(1023 - 127) << 52)
    }
}

/// Slots ordered by rank: a heap with the place of each slot, 16 bytes for each slot, every step O(log n).
struct RankHeap: Sendable {
    private var slots: [UInt32] = []
    /// The place of each slot in the heap.
    private var places: [UInt32] = []
    private var ranks: [UInt64] = []

    /// The bytes of memory used.
    var bytes: Int { slots.capacity * 4 + places.capacity * 4 + ranks.capacity * 8 }
    /// The slot with the lowest rank.
    var first: UInt32? { slots.first }

    private static let absent = UInt32.max

    /// Whether a slot is in the heap.
    func contains(_ slot: UInt32) -> Bool { slot < places.count && places[Int(slot)] != Self.absent }

    /// The rank of a slot in the heap.
    subscript(_ slot: UInt32) -> UInt64 { ranks[Int(slot)] }

    /// Adds a slot, or changes its rank.
    mutating func set(_ slot: UInt32, rank: UInt64) {
        places.extend(through: slot, with: Self.absent)
        ranks.extend(through: slot, with: 0)
        if places[Int(slot)] == Self.absent {
            places[Int(slot)] = UInt32(slots.count)
            slots.appendTightly(slot)
        }
        ranks[Int(slot)] = rank
        settle(slot)
    }

    /// Removes a slot; it must be in the heap.
    mutating func remove(_ slot: UInt32) {
        let place = Int(places[Int(slot)])
        places[Int(slot)] = Self.absent
        guard let last = slots.popLast(), last != slot else { return }
        slots[place] = last
        places[Int(last)] = UInt32(place)
        settle(last)
    }

    /// Gives every slot another rank.
    mutating func replaceRanks(_ change: (UInt64) -> UInt64) {
        for slot in slots { ranks[Int(slot)] = change(ranks[Int(slot)]) }
        for place in stride(from: slots.count / 2 - 1, through: 0, by: -1) { sink(slots[place], from: place) }
    }

    private mutating func settle(_ slot: UInt32) {
        let place = rise(slot, from: Int(places[Int(slot)]))
        sink(slot, from: place)
    }

    /// Moves a slot toward the front as far as necessary, and returns its place.
    private mutating func rise(_ slot: UInt32, from start: Int) -> Int {
        let rank = ranks[Int(slot)]
        var place = start
        while place > 0 {
            let parent = slots[(place - 1) / 4]
            guard rank < ranks[Int(parent)] else { break }
            put(parent, at: place)
            place = (place - 1) / 4
        }
        put(slot, at: place)
        return place
    }

    private mutating func sink(_ slot: UInt32, from start: Int) {
        let rank = ranks[Int(slot)]
        var place = start
        while 4 * place + 1 < slots.count {
            var least = 4 * place + 1
            for child in least + 1..<max(least + 1, min(slots.count, least + 4))
            where ranks[Int(slots[child])] < ranks[Int(slots[least])] {
                least = child
            }
            guard ranks[Int(slots[least])] < rank else { break }
            put(slots[least], at: place)
            place = least
        }
        put(slot, at: place)
    }

    private mutating func put(_ slot: UInt32, at place: Int) {
        slots[place] = slot
        places[Int(slot)] = UInt32(place)
    }
}
