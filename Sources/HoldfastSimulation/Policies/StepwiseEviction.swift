// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import HoldfastStorage

/// A policy that evicts one entry after another until the rest fits, and admits everything that fits.
///
/// Common code for such policies: sums never exceed the capacity, not even briefly, so that sizes near the largest number do not
/// overflow.
protocol StepwiseEviction: EvictionPolicy {
    var capacity: Int { get set }
    /// The sizes of the held entries, maintained by ``enter(_:key:size:)`` and ``leave(_:)``.
    var sizes: SlotSizes { get set }

    /// Bytes of the largest entry that is admitted.
    var largestEntry: Int { get }

    /// Called when an entry is offered, before anything is evicted for it.
    mutating func prepare(key: UInt64)

    /// Adds an entry; there is room for it.
    mutating func enter(_ slot: Slot, key: UInt64, size: Int)

    /// Removes a held entry.
    mutating func leave(_ slot: Slot)

    /// Removes and returns the entry to evict next; nil if none is held.
    mutating func evictOne() -> Slot?

    /// Changes the size of a held entry; there is room for it.
    mutating func change(_ slot: Slot, to size: Int)

    /// Updates what depends on the capacity.
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

/// The sizes of a policy's held entries, by slot, in 4 bytes each, and their sum.
///
/// Every size is exact; the few from 4 GiB are in a separate table.
struct SlotSizes: Sendable {
    private static let absent = UInt32.max
    private static let long = UInt32.max - 1

    private var sizes: [UInt32] = []
    private var longSizes: [UInt32: Int] = [:]
    private(set) var sum = 0
    private(set) var count = 0

    /// The bytes of memory used.
    var bytes: Int { sizes.capacity * 4 + longSizes.capacity * 16 }

    /// Whether the slot has a size.
    func holds(_ slot: UInt32) -> Bool {
        slot < sizes.count && sizes[Int(slot)] != Self.absent
    }

    /// The size of a slot; 0 if it has none.
    subscript(_ slot: UInt32) -> Int {
        guard slot < sizes.count else { return 0 }
        let size = sizes[Int(slot)]
        if size < Self.long { return Int(size) }
        return size == Self.absent ? 0 : longSizes[slot] ?? 0
    }

    /// Sets or replaces the size of a slot.
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

    /// Removes the size of a slot.
    mutating func remove(_ slot: UInt32) {
        guard holds(slot) else { return }
        sum -= self[slot]
        count -= 1
        if sizes[Int(slot)] == Self.long { longSizes[slot] = nil }
        sizes[Int(slot)] = Self.absent
    }
}

/// Evicts the least recently used entry, or the oldest one.
///
/// Every use moves an entry in a list, unless the oldest one is evicted: then popular entries leave as soon as others, which is the
/// baseline for every other policy. 12 bytes for each entry, every step O(1); a resized entry keeps its place.
struct LRUPolicy: StepwiseEviction {
    var capacity: Int
    var sizes = SlotSizes()
    private var order = SlotList()
    private let movesUsed: Bool

    /// A policy with this capacity in bytes; a negative number means 0.
    ///
    /// - Parameter movesUsed: whether a use counts; false for first in, first out.
    init(capacity: Int, movesUsed: Bool = true) {
        self.capacity = max(0, capacity)
        self.movesUsed = movesUsed
    }

    var metadataBytes: Int { sizes.bytes + order.bytes }

    mutating func use(_ slot: Slot) {
        guard movesUsed, holds(slot) else { return }
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

/// Sweeps a hand over the entries from the oldest to the newest, and evicts the first one that was not used since its last pass.
///
/// SIEVE of Zhang et al., "SIEVE is simpler than LRU" (NSDI 2024). A use sets a mark and moves nothing; new entries are added at
/// the front, and the hand stays where it is. 13 bytes for each entry; every step is O(1), an eviction amortized over the uses
/// whose marks it clears.
struct SievePolicy: StepwiseEviction {
    var capacity: Int
    var sizes = SlotSizes()
    private var links = SlotLinks()
    private var order = SlotLinks.Ends()
    private var isUsed: [Bool] = []
    /// Where the next sweep begins; nil for the oldest entry.
    private var hand: Slot?

    /// A policy with this capacity in bytes; a negative number means 0.
    init(capacity: Int) { self.capacity = max(0, capacity) }

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

/// The policies for comparison with the tiers, and the model of the disk tier.
extension EvictionStrategy {
    /// Least recently used.
    public static let lru = EvictionStrategy(named: "lru") { capacity, _ in LRUPolicy(capacity: capacity) }

    /// W-TinyLFU (2017), with a window that adapts to the hit ratio: entries requested more often than others stay.
    public static let wtinylfu = EvictionStrategy(named: "wtinylfu") { capacity, _ in
        WTinyLFUPolicy(capacity: capacity)
    }

    /// SIEVE (NSDI 2024): evicts the oldest entry that was not used recently.
    public static let sieve = EvictionStrategy(named: "sieve") { capacity, _ in SievePolicy(capacity: capacity) }

    /// S3-FIFO (SOSP 2023): three queues, one of which remembers evicted keys.
    public static let s3fifo = EvictionStrategy(named: "s3fifo") { capacity, _ in S3FIFOPolicy(capacity: capacity) }

    /// Greedy-Dual-Size-Frequency (1998): evicts the entry with the fewest uses per byte.
    public static let gdsf = EvictionStrategy(named: "gdsf") { capacity, _ in GDSFPolicy(capacity: capacity) }

    /// First in, first out.
    public static let fifo = EvictionStrategy(named: "fifo") { capacity, _ in
        LRUPolicy(capacity: capacity, movesUsed: false)
    }

    /// 3L-Cache (FAST 2025), which learns when entries are requested next; aims at few misses. LRU until it has seen enough
    /// requests.
    public static let threeLCache = EvictionStrategy(named: "3lcache") { capacity, seed in
        ThreeLCachePolicy(capacity: capacity, objective: .objects, seed: seed)
    }

    /// 3L-Cache, aiming at few missed bytes.
    public static let threeLCacheForBytes = EvictionStrategy(named: "3lcache-bytes") { capacity, seed in
        ThreeLCachePolicy(capacity: capacity, objective: .bytes, seed: seed)
    }

    /// The disk tier's policy: the rules by which a `DiskStore` admits and reclaims, with segments and dead bytes.
    public static let disk = EvictionStrategy(named: "disk") { capacity, seed in
        SegmentedPolicy(capacity: capacity, seed: seed)
    }

    /// Every strategy with a fixed name, the tiers' defaults first.
    public static let all: [EvictionStrategy] = [
        .memory, .disk, .lru, .wtinylfu, .sieve, .s3fifo, .gdsf, .threeLCache, .threeLCacheForBytes, .fifo,
    ]

    /// The strategy with this name, as in its description: one of ``all``, or `dtlfu-B` with a B from 0 to 1.
    public init?(named name: String) {
        if name.hasPrefix("dtlfu-"), let beta = Double(name.dropFirst(6)), (0...1).contains(beta) {
            self = .densityTinyLFU(beta: beta)
            return
        }
        guard let found = Self.all.first(where: { $0.description == name }) else { return nil }
        self = found
    }
}
