// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import HoldfastStorage

/// A policy that evicts one entry after another until the rest fits, and does not refuse what fits.
///
/// What such policies share: sums never exceed the capacity, not even for a moment, so that sizes near the largest number
/// do not overflow.
protocol StepwiseEviction: EvictionPolicy {
    var capacity: Int { get set }
    /// The sizes of the entries held; ``enter(_:key:size:)`` and ``leave(_:)`` keep them.
    var sizes: SlotSizes { get set }

    /// Bytes of the largest entry that is let in.
    var largestEntry: Int { get }

    /// Notes that an entry is offered, before anything leaves for it.
    mutating func prepare(key: UInt64)

    /// Puts an entry in its place; there is room for it.
    mutating func enter(_ slot: Slot, key: UInt64, size: Int)

    /// Takes an entry that is held out of its place.
    mutating func leave(_ slot: Slot)

    /// Takes the entry out that is to leave first; nil when none is held.
    mutating func evictOne() -> Slot?

    /// Gives an entry that is held another size, for which there is room.
    mutating func change(_ slot: Slot, to size: Int)

    /// Draws what depends on the capacity from the new one.
    mutating func capacityChanged()
}

extension StepwiseEviction {
    var used: Int { sizes.sum }
    var count: Int { sizes.count }
    var largestEntry: Int { capacity }

    func holds(_ slot: Slot) -> Bool { sizes.holds(slot) }

    mutating func prepare(key: UInt64) {}

    mutating func insert(_ slot: Slot, key: UInt64, size: Int, victims: inout [Slot]) {
        let size = Swift.max(0, size)
        prepare(key: key)
        guard size <= largestEntry else { return victims.append(slot) }
        evict(until: capacity - size, &victims)
        enter(slot, key: key, size: size)
    }

    mutating func remove(_ slot: Slot) {
        if holds(slot) { leave(slot) }
    }

    mutating func resize(_ slot: Slot, to size: Int, victims: inout [Slot]) {
        guard holds(slot) else { return }
        let size = Swift.max(0, size)
        if size > capacity {
            leave(slot)
            return victims.append(slot)
        }
        while holds(slot), used - sizes[slot] > capacity - size, let victim = evictOne() { victims.append(victim) }
        if holds(slot) { change(slot, to: size) }
    }

    mutating func change(_ slot: Slot, to size: Int) { sizes.set(slot, size: size) }

    mutating func setCapacity(_ capacity: Int, victims: inout [Slot]) {
        self.capacity = Swift.max(0, capacity)
        capacityChanged()
        evict(until: self.capacity, &victims)
    }

    mutating func capacityChanged() {}

    private mutating func evict(until bytes: Int, _ victims: inout [Slot]) {
        while used > bytes, let victim = evictOne() { victims.append(victim) }
    }
}

/// The sizes of the entries a policy holds, by slot, in 4 bytes each, and their sum.
///
/// Every number of bytes is kept exactly; those from 4 GiB on, of which there are few, in a table of their own.
struct SlotSizes: Sendable {
    private static let absent = UInt32.max
    private static let long = UInt32.max - 1

    private var sizes: [UInt32] = []
    private var longSizes: [UInt32: Int] = [:]
    private(set) var sum = 0
    private(set) var count = 0

    /// The bytes of memory taken.
    var bytes: Int { sizes.capacity * 4 + longSizes.capacity * 16 }

    /// Whether the slot has a size.
    func holds(_ slot: UInt32) -> Bool {
        slot < sizes.count && sizes[Int(slot)] != Self.absent
    }

    /// The size of a slot; 0 where it has none.
    subscript(_ slot: UInt32) -> Int {
        guard slot < sizes.count else { return 0 }
        let size = sizes[Int(slot)]
        if size < Self.long { return Int(size) }
        return size == Self.absent ? 0 : longSizes[slot] ?? 0
    }

    /// Gives a slot a size, in place of one it may have.
    mutating func set(_ slot: UInt32, size: Int) {
        remove(slot)
        sizes.extend(through: slot, with: Self.absent)
        let size = max(0, size)
        if size < Int(Self.long) {
            sizes[Int(slot)] = UInt32(size)
        } else {
            sizes[Int(slot)] = Self.long
            longSizes[slot] = size
        }
        sum += size
        count += 1
    }

    /// Takes the size of a slot away.
    mutating func remove(_ slot: UInt32) {
        guard holds(slot) else { return }
        sum -= self[slot]
        count -= 1
        if sizes[Int(slot)] == Self.long { longSizes[slot] = nil }
        sizes[Int(slot)] = Self.absent
    }
}

/// Evicts what was used longest ago.
///
/// Every use moves an entry in a list. 12 bytes an entry, every step O(1).
struct LRUPolicy: StepwiseEviction {
    var capacity: Int
    var sizes = SlotSizes()
    private var order = SlotList()

    /// A policy for so many bytes; a negative number means 0.
    init(capacity: Int) {
        self.capacity = max(0, capacity)
    }

    var metadataBytes: Int { sizes.bytes + order.bytes }

    mutating func use(_ slot: Slot) {
        guard holds(slot) else { return }
        order.remove(slot)
        order.prepend(slot)
    }

    mutating func enter(_ slot: Slot, key: UInt64, size: Int) {
        sizes.set(slot, size: size)
        order.prepend(slot)
    }

    mutating func leave(_ slot: Slot) {
        sizes.remove(slot)
        order.remove(slot)
    }

    mutating func evictOne() -> Slot? {
        guard let slot = order.last else { return nil }
        leave(slot)
        return slot
    }
}

/// Evicts what came in longest ago.
///
/// The least that a cache can do, and the measure of what every other policy gains. A use moves nothing and is not even
/// noted, so hits cost nothing and take no lock; what is popular leaves as soon as what is not and has to be fetched again.
///
/// An entry larger than the capacity is not let in, and then nothing leaves. 12 bytes an entry, every step O(1); what is
/// resized keeps its place.
struct FIFOPolicy: StepwiseEviction {
    var capacity: Int
    var sizes = SlotSizes()
    private var order = SlotList()

    /// A policy for so many bytes; a negative number means 0.
    init(capacity: Int) {
        self.capacity = max(0, capacity)
    }

    var metadataBytes: Int { sizes.bytes + order.bytes }

    mutating func use(_ slot: Slot) {}

    mutating func enter(_ slot: Slot, key: UInt64, size: Int) {
        sizes.set(slot, size: size)
        order.prepend(slot)
    }

    mutating func leave(_ slot: Slot) {
        sizes.remove(slot)
        order.remove(slot)
    }

    mutating func evictOne() -> Slot? {
        guard let slot = order.last else { return nil }
        leave(slot)
        return slot
    }
}

/// Sweeps a hand over the entries from the oldest to the newest, and evicts the first one it finds unused since its last pass.
///
/// SIEVE of Zhang et al., "SIEVE is simpler than LRU" (NSDI 2024). A use sets a mark and moves nothing; new entries come
/// in at the front, and the hand stays where it is. 13 bytes an entry; every step O(1), an eviction amortized over the uses
/// whose marks it clears.
struct SievePolicy: StepwiseEviction {
    var capacity: Int
    var sizes = SlotSizes()
    private var links = SlotLinks()
    private var order = SlotLinks.Ends()
    private var isUsed: [Bool] = []
    /// Where the next sweep begins; nil for the oldest entry.
    private var hand: Slot?

    /// A policy for so many bytes; a negative number means 0.
    init(capacity: Int) {
        self.capacity = max(0, capacity)
    }

    var metadataBytes: Int { sizes.bytes + links.bytes + isUsed.capacity }

    mutating func use(_ slot: Slot) {
        if holds(slot) { isUsed[Int(slot)] = true }
    }

    mutating func enter(_ slot: Slot, key: UInt64, size: Int) {
        sizes.set(slot, size: size)
        links.prepend(slot, to: &order)
        isUsed.extend(through: slot, with: false)
        isUsed[Int(slot)] = false
    }

    mutating func leave(_ slot: Slot) {
        if hand == slot { hand = links.before(slot) }
        sizes.remove(slot)
        links.remove(slot, from: &order)
    }

    mutating func evictOne() -> Slot? {
        guard var slot = hand ?? order.last, let oldest = order.last else { return nil }
        while isUsed[Int(slot)] {
            isUsed[Int(slot)] = false
            slot = links.before(slot) ?? oldest
        }
        hand = links.before(slot)
        leave(slot)
        return slot
    }
}

/// The policies to compare the tiers with, and the model of the disk tier.
extension EvictionStrategy {
    /// Least recently used.
    public static let lru = EvictionStrategy(named: "lru") { capacity, _ in LRUPolicy(capacity: capacity) }

    /// W-TinyLFU (2017), whose window follows the hit ratio: what is asked for more often than others stays.
    public static let wtinylfu = EvictionStrategy(named: "wtinylfu") { capacity, _ in
        WTinyLFUPolicy(capacity: capacity)
    }

    /// SIEVE (NSDI 2024): the oldest entry that was not used lately leaves.
    public static let sieve = EvictionStrategy(named: "sieve") { capacity, _ in SievePolicy(capacity: capacity) }

    /// S3-FIFO (SOSP 2023): three queues, of which one remembers what left.
    public static let s3fifo = EvictionStrategy(named: "s3fifo") { capacity, _ in S3FIFOPolicy(capacity: capacity) }

    /// Greedy-Dual-Size-Frequency (1998): the fewest uses for each byte leave.
    public static let gdsf = EvictionStrategy(named: "gdsf") { capacity, _ in GDSFPolicy(capacity: capacity) }

    /// First in, first out.
    public static let fifo = EvictionStrategy(named: "fifo") { capacity, _ in FIFOPolicy(capacity: capacity) }

    /// 3L-Cache (FAST 2025), which learns when entries are asked for next, for few misses. LRU until it has seen enough requests.
    public static let threeLCache = EvictionStrategy(named: "3lcache") { capacity, seed in
        ThreeLCachePolicy(capacity: capacity, objective: .objects, seed: seed)
    }

    /// 3L-Cache for few bytes missed.
    public static let threeLCacheForBytes = EvictionStrategy(named: "3lcache-bytes") { capacity, seed in
        ThreeLCachePolicy(capacity: capacity, objective: .bytes, seed: seed)
    }

    /// The disk tier's: the rules by which a `DiskStore` admits and reclaims, over segments, dead bytes counted.
    public static let disk = EvictionStrategy(named: "disk") { capacity, seed in
        SegmentedPolicy(capacity: capacity, seed: seed)
    }

    /// Every strategy with a name of its own, the tiers' defaults first.
    public static let all: [EvictionStrategy] = [
        .memory, .disk, .lru, .wtinylfu, .sieve, .s3fifo, .gdsf, .threeLCache, .threeLCacheForBytes, .fifo,
    ]

    /// The strategy with this name, as its description spells it: one of ``all``, or `dtlfu-B` with a B from 0 to 1.
    public init?(named name: String) {
        if name.hasPrefix("dtlfu-"), let beta = Double(name.dropFirst(6)), (0...1).contains(beta) {
            self = .densityTinyLFU(beta: beta)
            return
        }
        guard let found = Self.all.first(where: { $0.description == name }) else { return nil }
        self = found
    }
}
