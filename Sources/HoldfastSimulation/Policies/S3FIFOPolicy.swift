// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastStorage

/// Puts new entries into a small queue first, and keeps those in a main queue that were used twice there or return.
///
/// S3-FIFO of Yang et al., "FIFO queues are all you need for cache eviction" (SOSP 2023), as implemented in libCacheSim 0.3.5: a
/// tenth of the bytes for the small queue, the rest for the main one, in which an entry gets one more round for each use, up to
/// three. Of what left the small queue, as many bytes as nine tenths of the capacity are remembered. An entry that is not smaller
/// than the small queue is not admitted; a cache for less than 20 entries of one size therefore holds nothing.
///
/// A use counts and moves nothing. 17 bytes for each entry and 6 for remembered keys; every step is O(1), an eviction amortized
/// over the uses that it clears.
struct S3FIFOPolicy: StepwiseEviction {
    private static let isMain: UInt8 = 0x80
    private static let uses: UInt8 = 0x7F

    var capacity: Int
    var sizes = SlotSizes()
    private var links = SlotLinks()
    private var small = SlotLinks.Ends()
    private var main = SlotLinks.Ends()
    private var smallBytes = 0
    /// Uses, up to three, and the queue.
    private var states: [UInt8] = []
    private var marks: [UInt32] = []
    private var ghosts: GhostQueue
    private var isComingBack = false
    private var hasEvicted = false

    /// A policy with this capacity in bytes; a negative number means 0.
    init(capacity: Int) {
        self.capacity = max(0, capacity)
        ghosts = GhostQueue(limit: Self.remembered(max(0, capacity)))
    }

    var metadataBytes: Int {
        sizes.bytes + links.bytes + states.capacity + marks.capacity * 4 + ghosts.bytes
    }

    var largestEntry: Int { isComingBack ? smallCapacity : smallCapacity - 1 }

    mutating func use(_ slot: Slot) {
        guard holds(slot), states[Int(slot)] & Self.uses < 3 else { return }
        states[Int(slot)] += 1
    }

    mutating func prepare(key: UInt64) {
        isComingBack = ghosts.takes(GhostQueue.mark(key))
    }

    mutating func enter(_ slot: Slot, key: UInt64, size: Int) {
        sizes.set(slot, size: size)
        states.extend(through: slot, with: 0)
        marks.extend(through: slot, with: 0)
        marks[Int(slot)] = GhostQueue.mark(key)
        // While the cache fills for the first time, the main queue takes what does not fit into the small one.
        if isComingBack || (!hasEvicted && smallBytes >= smallCapacity) {
            states[Int(slot)] = Self.isMain
            links.prepend(slot, to: &main)
        } else {
            states[Int(slot)] = 0
            links.prepend(slot, to: &small)
            smallBytes += size
        }
    }

    mutating func leave(_ slot: Slot) {
        unlink(slot)
        sizes.remove(slot)
    }

    mutating func change(_ slot: Slot, to size: Int) {
        if states[Int(slot)] & Self.isMain == 0 { smallBytes += size - sizes[slot] }
        sizes.set(slot, size: size)
    }

    mutating func evictOne() -> Slot? {
        hasEvicted = true
        if smallBytes > 0, used - smallBytes <= capacity - smallCapacity, let victim = evictFromSmall() {
            return victim
        }
        return evictFromMain()
    }

    mutating func capacityChanged() {
        ghosts.setLimit(Self.remembered(capacity))
    }

    // MARK: Queues

    private var smallCapacity: Int { capacity / 10 }

    private static func remembered(_ capacity: Int) -> Int { capacity - capacity / 10 - (capacity % 10).signum() }

    private mutating func unlink(_ slot: Slot) {
        if states[Int(slot)] & Self.isMain == 0 {
            smallBytes -= sizes[slot]
            links.remove(slot, from: &small)
        } else {
            links.remove(slot, from: &main)
        }
    }

    /// Evicts from the small queue; entries used twice there move to the main queue.
    private mutating func evictFromSmall() -> Slot? {
        while let slot = small.last {
            guard states[Int(slot)] & Self.uses >= 2 else {
                let size = sizes[slot]
                leave(slot)
                ghosts.note(marks[Int(slot)], size: size, entries: count)
                return slot
            }
            unlink(slot)
            states[Int(slot)] = Self.isMain
            links.prepend(slot, to: &main)
        }
        return nil
    }

    private mutating func evictFromMain() -> Slot? {
        while let slot = main.last {
            guard states[Int(slot)] & Self.uses > 0 else {
                leave(slot)
                return slot
            }
            states[Int(slot)] -= 1
            links.remove(slot, from: &main)
            links.prepend(slot, to: &main)
        }
        return nil
    }
}

/// The keys that left recently, as long as the bytes of those that left since then are below a limit.
///
/// A key is 32 bits of its hash, with 16 bits for its age: 6 bytes for each cell, and a cell for each entry of the cache. Every key
/// has two possible buckets of eight cells; if both are full, the oldest key is forgotten, which happens if the keys that left are
/// much smaller than the held ones. An unknown key is mistaken for a remembered one about once in 200 million.
///
/// A key that returns is forgotten, but its bytes still count as having left, which makes the memory slightly shorter than that of
/// a queue.
struct GhostQueue: Sendable {
    private static let depth = 8
    private static let none: UInt32 = 0

    private var marks: [UInt32] = []
    private var stamps: [UInt16] = []
    private var buckets = 0
    /// The bytes of an age of 1, a thousandth of the limit, and the age up to which a key is remembered.
    private var unit: UInt64 = 1
    private var span: UInt16 = 0
    /// Bytes that left, modulo 2^64.
    private var clock: UInt64 = 0
    /// The next cell to check for expired keys, and the pending work in fractions of a cell.
    private var hand = 0
    private var owed = 0

    /// Remembers this many bytes.
    init(limit: Int) { setLimit(limit) }

    /// The bytes of memory used.
    var bytes: Int { marks.capacity * 4 + stamps.capacity * 2 }

    /// Changes the number of bytes to remember, and forgets all keys.
    mutating func setLimit(_ limit: Int) {
        unit = UInt64(max(1, limit / 1_024))
        span = UInt16(UInt64(limit) / unit)
        (marks, stamps, buckets, hand, owed) = ([], [], 0, 0, 0)
    }

    /// Records a key that left.
    ///
    /// - Parameters:
    ///   - size: bytes, not negative.
    ///   - entries: how many the cache holds, which determines the table's size.
    mutating func note(_ mark: UInt32, size: Int, entries: Int) {
        guard UInt64(size) <= UInt64(span) * unit else { return }
        fit(entries)
        place(mark, stamp: now)
        let before = now
        clock &+= UInt64(size)
        sweep(Int(now &- before))
    }

    /// Whether the key left recently; this also forgets it.
    mutating func takes(_ mark: UInt32) -> Bool {
        guard buckets > 0 else { return false }
        let homes = homes(mark)
        for index in 0..<2 * Self.depth {
            let cell = Self.cell(index, homes: homes)
            guard marks[cell] == mark, isLive(cell) else { continue }
            marks[cell] = Self.none
            return true
        }
        return false
    }

    /// The part of a key's hash that is kept.
    static func mark(_ key: UInt64) -> UInt32 { max(none + 1, UInt32(truncatingIfNeeded: key >> 32)) }

    // MARK: Cells

    private var now: UInt16 { UInt16(truncatingIfNeeded: clock / unit) }

    private func isLive(_ cell: Int) -> Bool { now &- stamps[cell] <= span }

    /// The first cells of the two buckets of a key.
    private func homes(_ mark: UInt32) -> (Int, Int) {
        let other = (mark ^ mark >> 15) &* 0x9E37_79B1
        return (
            Int(truncatingIfNeeded: (UInt64(mark) * UInt64(buckets)) >> 32) * Self.depth,
            Int(truncatingIfNeeded: (UInt64(other) * UInt64(buckets)) >> 32) * Self.depth
        )
    }

    private static func cell(_ index: Int, homes: (Int, Int)) -> Int {
        index < depth ? homes.0 + index : homes.1 + index - depth
    }

    private mutating func place(_ mark: UInt32, stamp: UInt16) {
        let homes = homes(mark)
        var best = homes.0
        var oldest: UInt16 = 0
        for index in 0..<2 * Self.depth {
            let cell = Self.cell(index, homes: homes)
            guard marks[cell] != Self.none, isLive(cell) else {
                best = cell
                break
            }
            let age = now &- stamps[cell]
            if age >= oldest { (best, oldest) = (cell, age) }
        }
        marks[best] = mark
        stamps[best] = stamp
    }

    /// Makes a new table if the number of entries has grown by a sixteenth or fallen by half.
    private mutating func fit(_ entries: Int) {
        let wanted = max(1, entries / Self.depth)
        guard wanted > buckets + buckets / 16 || wanted < buckets / 2 else { return }
        let kept = marks.indices.filter { marks[$0] != Self.none && isLive($0) }.map { (marks[$0], stamps[$0]) }
        marks = Array(repeating: Self.none, count: wanted * Self.depth)
        stamps = Array(repeating: 0, count: wanted * Self.depth)
        (buckets, hand, owed) = (wanted, 0, 0)
        for (mark, stamp) in kept { place(mark, stamp: stamp) }
    }

    /// Clears cells of expired keys: the whole table while the clock passes a quarter of its range, so that ages never wrap.
    private mutating func sweep(_ ticks: Int) {
        owed += ticks * marks.count
        while owed >= 1 << 14 {
            owed -= 1 << 14
            if !isLive(hand) { marks[hand] = Self.none }
            hand = hand + 1 == marks.count ? 0 : hand + 1
        }
    }
}
