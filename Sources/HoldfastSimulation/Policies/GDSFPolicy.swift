// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastStorage

/// Evicts the entry of the least priority: uses for each byte, raised by the priority of the last one evicted.
///
/// Greedy-Dual-Size-Frequency of Cherkasova, "Improving WWW proxies performance with Greedy-Dual-Size-Frequency caching
/// policy" (HP Labs 1998), with an equal cost for every miss; of equal priorities the one used longest ago leaves. 22 bytes an
/// entry; every step O(log n).
///
/// Priorities are rounded to 32 binary digits, so that they leave room for the time of the last use in the same 8 bytes.
struct GDSFPolicy: StepwiseEviction {
    var capacity: Int
    var sizes = SlotSizes()
    private var heap = RankHeap()
    private var uses: [UInt16] = []
    private var clock: UInt32 = 0
    /// The priority of the last entry evicted.
    private var floor = 0.0
    /// Entries that left since the floor was 0.
    private var evictions = 0

    /// A policy for so many bytes; a negative number means 0.
    init(capacity: Int) {
        self.capacity = max(0, capacity)
    }

    var metadataBytes: Int { sizes.bytes + heap.bytes + uses.capacity * 2 }

    /// Weighs the new entry with the others, so that it is its own victim when its priority is the least.
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
        enter(slot, size, rank)
    }

    mutating func use(_ slot: Slot) {
        guard holds(slot) else { return }
        if uses[Int(slot)] < .max { uses[Int(slot)] += 1 }
        heap.set(slot, rank(uses: uses[Int(slot)], size: sizes[slot]))
    }

    mutating func enter(_ slot: Slot, key: UInt64, size: Int) {
        enter(slot, size, rank(uses: 1, size: size))
    }

    mutating func change(_ slot: Slot, to size: Int) {
        sizes.set(slot, size)
        heap.set(slot, rank(uses: uses[Int(slot)], size: size))
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

    private mutating func enter(_ slot: Slot, _ size: Int, _ rank: UInt64) {
        sizes.set(slot, size)
        uses.extend(through: slot, with: 0)
        uses[Int(slot)] = 1
        heap.set(slot, rank)
    }

    // MARK: Ranks

    private mutating func leaves(_ rank: UInt64) {
        floor = Self.priority(rank)
        evictions += 1
    }

    private mutating func rank(uses: UInt16, size: Int) -> UInt64 {
        clock &+= 1
        return Self.rank(floor + Double(uses) / Double(max(1, size)), clock)
    }

    /// Takes the floor off every priority where it is so high that they lose digits beside it, at most once in as many
    /// evictions as there are entries.
    private mutating func lowerFloor() {
        guard evictions > count, floor * Double(used) > 4_096 * Double(count) else { return }
        heap.replaceRanks { Self.rank(max(0, Self.priority($0) - floor), UInt32(truncatingIfNeeded: $0)) }
        (floor, evictions) = (0, 0)
    }

    /// A number that sorts by the priority first and by the clock, of which 24 digits are kept, next.
    ///
    /// The exponent of a priority between 2^-126 and 2^127 takes 8 digits, those behind the point 32.
    private static func rank(_ priority: Double, _ clock: UInt32) -> UInt64 {
        let least = UInt64(1023 - 127) << 52
        let offset = priority.bitPattern > least ? priority.bitPattern - least : 0
        return min(offset >> 20, 0xFF_FFFF_FFFF) << 24 | UInt64(clock & 0xFF_FFFF)
    }

    private static func priority(_ rank: UInt64) -> Double {
        rank >> 24 == 0 ? 0 : Double(bitPattern: (rank >> 24) << 20 + UInt64(1023 - 127) << 52)
    }
}
