// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Lets new entries pass a small queue first, and keeps those in a main queue that were used twice there or come back.
///
/// S3-FIFO of Yang et al., "FIFO queues are all you need for cache eviction" (SOSP 2023), as libCacheSim 0.3.5 does it: a
/// tenth of the bytes for the small queue, the rest for the main one, in which an entry has a round more for each use up to
/// three; nine tenths of the capacity are remembered of what left the small queue. What is not smaller than the small queue
/// is not admitted; a cache of less than 20 entries of one size therefore holds nothing.
///
/// A use counts and moves nothing. 17 bytes an entry and 6 for what is remembered; every step O(1), an eviction amortized
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
    /// Uses, up to three, and which queue.
    private var states: [UInt8] = []
    private var marks: [UInt32] = []
    private var ghosts: GhostQueue
    private var isComingBack = false
    private var hasEvicted = false

    /// A policy for so many bytes; a negative number means 0.
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
        sizes.set(slot, size)
        states.extend(through: slot, with: 0)
        marks.extend(through: slot, with: 0)
        marks[Int(slot)] = GhostQueue.mark(key)
        // While the cache fills for the first time, the main queue takes what the small one has no room for.
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
        sizes.set(slot, size)
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

    /// Evicts from the small queue; what was used twice there moves on.
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
