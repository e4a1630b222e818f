// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastStorage

/// Slots in the order of their ranks: a heap of slots with their places, 16 bytes a slot, every step O(log n).
struct RankHeap: Sendable {
    private var slots: [UInt32] = []
    /// The place of each slot in the heap.
    private var places: [UInt32] = []
    private var ranks: [UInt64] = []

    /// The bytes of memory taken.
    var bytes: Int { slots.capacity * 4 + places.capacity * 4 + ranks.capacity * 8 }
    /// The slot of the least rank.
    var first: UInt32? { slots.first }

    private static let absent = UInt32.max

    /// Whether a slot is in the heap.
    func contains(_ slot: UInt32) -> Bool { slot < places.count && places[Int(slot)] != Self.absent }

    /// The rank of a slot in the heap.
    subscript(_ slot: UInt32) -> UInt64 { ranks[Int(slot)] }

    /// Enters a slot, or changes its rank.
    mutating func set(_ slot: UInt32, _ rank: UInt64) {
        places.extend(through: slot, with: Self.absent)
        ranks.extend(through: slot, with: 0)
        if places[Int(slot)] == Self.absent {
            places[Int(slot)] = UInt32(slots.count)
            slots.appendTightly(slot)
        }
        ranks[Int(slot)] = rank
        settle(slot)
    }

    /// Takes a slot out; it must be in the heap.
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

    /// Moves a slot towards the front as far as it has to, and tells its place.
    private mutating func rise(_ slot: UInt32, from start: Int) -> Int {
        let rank = ranks[Int(slot)]
        var place = start
        while place > 0 {
            let parent = slots[(place - 1) / 4]
            guard rank < ranks[Int(parent)] else { break }
            put(parent, place)
            place = (place - 1) / 4
        }
        put(slot, place)
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
            put(slots[least], place)
            place = least
        }
        put(slot, place)
    }

    private mutating func put(_ slot: UInt32, _ place: Int) {
        slots[place] = slot
        places[Int(slot)] = UInt32(place)
    }
}
