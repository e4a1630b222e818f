// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Holds what is requested most often for its bytes: frequency / size^beta decides.
///
/// A new entry enters a FIFO window. An entry that leaves the window stays if it beats the lowest of some entries drawn from the
/// main part, which are evicted for it. A hit writes one word and moves nothing. An entry's frequency, which halves with time, is
/// in its record; a sketch remembers the keys that are not held. docs/decisions/storage/0015-density-tinylfu.md has the reasons and
/// the measurements. About 23 bytes for each entry.
struct DensityTinyLFUPolicy: EvictionPolicy {
    /// Entries examined for one victim.
    static let samples = 32
    /// Requests for each entry after which a frequency has halved.
    private static let halfLife = 20
    /// Words of the sketch for each 16 entries.
    private static let wordsForSixteen = 11

    private(set) var capacity: Int
    var used = 0
    var count = 0
    let beta: Int
    var entries = CompactArray<DensityEntry>()
    var longSizes: [Slot: Int] = [:]
    var main = CompactArray<Slot>()
    var mainCount = 0
    var window = WindowQueue()
    var windowCount = 0
    var windowUsed = 0
    var windowCapacity = 0
    var sketch = FrequencySketch(words: 64)
    var tuner: WindowTuner
    var random: PolicyRandom
    /// Half-lives since the start, times 2^32.
    var time: UInt64 = 0
    var timeStep: UInt64 = 0
    var halvings: UInt64 = 0
    var credit = 0

    /// A policy with this capacity (a negative number means 0); `beta` 0 favors byte hits, 1 object hits.
    init(capacity: Int, beta: Double, seed: UInt64) {
        self.capacity = Self.bounded(capacity)
        self.beta = Int(max(0, min(1, beta)) * 1024)
        random = PolicyRandom(seed: seed)
        tuner = WindowTuner(beta: self.beta, seed: seed)
        windowCapacity = bytes(tuner.share)
        setTimeStep()
    }

    var metadataBytes: Int {
        entries.bytes + main.bytes + window.bytes + sketch.bytes + tuner.bytes + longSizes.capacity * 16
    }

    func holds(_ slot: Slot) -> Bool { slot < entries.count && entries[Int(slot)].place != .absent }

    mutating func use(_ slot: Slot) {
        guard holds(slot) else { return }
        let now = tick()
        let weight = entries[Int(slot)].weight(at: now)
        let incremented = DensityWeight.incremented(weight)
        entries[Int(slot)].setWeight(incremented, at: now)
        if entries[Int(slot)].place == .window { entries[Int(slot)].place = .usedInWindow }
        recordInTuner(entries[Int(slot)].hash, size: size(slot), weight: incremented)
    }

    mutating func insert(_ slot: Slot, key: UInt64, size: Int, victims: inout [Slot]) {
        guard !holds(slot) else { return resize(slot, to: size, victims: &victims) }
        let now = tick()
        let hash = UInt32(truncatingIfNeeded: key)
        let weight = DensityWeight.weight(ofCount: sketch.add(hash))
        recordInTuner(hash, size: max(0, size), weight: weight)
        credit = min(4_096, credit + 8)
        guard size <= capacity else { return victims.append(slot) }
        while entries.count <= slot { entries.append(DensityEntry()) }
        entries[Int(slot)].hash = hash
        entries[Int(slot)].setWeight(weight, at: now)
        setSize(slot, size: max(0, size))
        used += max(0, size)
        count += 1
        if size > windowCapacity { admit(slot, isUsed: false, victims: &victims) } else { enterWindow(slot) }
        windowCapacity = bytes(tuner.share)
        trimWindow(&victims)
        fitSketch()
    }

    mutating func remove(_ slot: Slot) {
        guard holds(slot) else { return }
        leave(slot)
    }

    mutating func resize(_ slot: Slot, to size: Int, victims: inout [Slot]) {
        guard holds(slot) else { return }
        guard size <= capacity else {
            leave(slot)
            return victims.append(slot)
        }
        let grown = max(0, size) - self.size(slot)
        used += grown
        if entries[Int(slot)].place != .main { windowUsed += grown }
        setSize(slot, size: max(0, size))
        evict(&victims)
    }

    mutating func setCapacity(_ capacity: Int, victims: inout [Slot]) {
        self.capacity = Self.bounded(capacity)
        windowCapacity = bytes(tuner.share)
        evict(&victims)
    }

    /// Evicts until the rest fits. The window is not trimmed for its own sake, so that small changes cost nothing.
    mutating func evict(_ victims: inout [Slot]) {
        while used > capacity {
            if windowUsed > windowCapacity || mainCount == 0, let oldest = popWindow() {
                admit(oldest.slot, isUsed: oldest.isUsed, victims: &victims)
            } else {
                var end = main.count
                guard drawLeast(&end) != nil else { return }
                evictMain(from: end, &victims)
            }
        }
    }
}

extension DensityTinyLFUPolicy {
    /// A capacity that leaves room for the sum of two.
    private static func bounded(_ capacity: Int) -> Int { max(0, min(Int.max / 4, capacity)) }

    func size(_ slot: Slot) -> Int {
        let size = entries[Int(slot)].size
        return size < .max ? Int(size) : longSizes[slot] ?? Int(UInt32.max)
    }

    mutating func setSize(_ slot: Slot, size: Int) {
        if entries[Int(slot)].size == .max { longSizes[slot] = nil }
        entries[Int(slot)].size = UInt32(clamping: size)
        if entries[Int(slot)].size == .max { longSizes[slot] = size }
    }

    /// Takes a held entry out of the window or the main part; its item stays there.
    mutating func leave(_ slot: Slot) {
        if entries[Int(slot)].place == .main {
            mainCount -= 1
        } else {
            windowUsed -= size(slot)
            windowCount -= 1
            entries[Int(slot)].staleItems += 1
        }
        forget(slot)
        compact()
    }

    /// Gives up an entry that is in neither part; the sketch remembers how often it was used.
    mutating func forget(_ slot: Slot) {
        used -= size(slot)
        count -= 1
        setSize(slot, size: 0)
        entries[Int(slot)].place = .absent
        let frequency = DensityWeight.count(of: entries[Int(slot)].weight(at: now))
        if frequency > 1 { sketch.raise(entries[Int(slot)].hash, to: frequency) }
    }

    var now: UInt32 { UInt32(truncatingIfNeeded: time >> 23) }

    mutating func tick() -> UInt32 {
        time &+= timeStep
        return now
    }

    mutating func recordInTuner(_ hash: UInt32, size: Int, weight: Int32) {
        guard tuner.samples(hash) else { return }
        tuner.note(hash, size: size, weight: weight, now: now, capacity: capacity, expected: expected)
    }

    /// The number of entries that will fill the capacity, estimated from the held ones.
    var expected: Int {
        WindowTuner.expected(held: count, used: used, capacity: capacity)
    }

    mutating func setTimeStep() {
        timeStep = max(1, (1 << 32) / UInt64(sketch.count * 16 / Self.wordsForSixteen * Self.halfLife))
    }

    /// The sketch ages twice as fast as the entries, and follows the number of entries that will fill the capacity.
    mutating func fitSketch() {
        let isHalved = halvings != time >> 31
        if isHalved {
            sketch.halve()
            halvings = time >> 31
        }
        let words = max(64, min(2 * count, expected) * Self.wordsForSixteen / 16)
        guard words > sketch.count / 4 * 5 || isHalved && words < sketch.count / 5 * 4 else { return }
        sketch = FrequencySketch(words: words)
        setTimeStep()
    }
}

extension DensityTinyLFUPolicy {
    func bytes(_ share: Double) -> Int { Int(share * Double(capacity)) }

    mutating func enterWindow(_ slot: Slot) {
        entries[Int(slot)].place = .window
        windowUsed += size(slot)
        windowCount += 1
        // If a slot has left as many items behind as can be counted, its entry takes the place of the last of them.
        if entries[Int(slot)].staleItems == 31 {
            entries[Int(slot)].staleItems = 30
        } else {
            window.append(slot)
        }
    }

    /// Moves a few entries at a time, so that the window shrinks gradually.
    mutating func trimWindow(_ victims: inout [Slot]) {
        for _ in 0..<16 {
            guard windowUsed > windowCapacity, let oldest = popWindow() else { break }
            admit(oldest.slot, isUsed: oldest.isUsed, victims: &victims)
        }
        evict(&victims)
    }

    /// Takes the oldest entry out of the window; it is then in neither part, but counts as held.
    mutating func popWindow() -> (slot: Slot, isUsed: Bool)? {
        while let slot = window.popFirst() {
            guard Self.passes(&entries[Int(slot)]) else { continue }
            let isUsed = entries[Int(slot)].place == .usedInWindow
            entries[Int(slot)].place = .absent
            windowUsed -= size(slot)
            windowCount -= 1
            return (slot, isUsed)
        }
        return nil
    }

    /// Whether the next item for a slot is valid, and not one that was left behind.
    private static func passes(_ entry: inout DensityEntry) -> Bool {
        guard entry.staleItems > 0 else { return true }
        entry.staleItems -= 1
        return false
    }

    /// Drops the items left behind once they are the majority.
    mutating func compact() {
        if window.count > 2 * windowCount + 64 {
            var entries = entries
            self.entries = CompactArray()
            window.keep { slot in
                Self.passes(&entries[Int(slot)])
            }
            self.entries = entries
        }
        if main.count > 2 * mainCount + 64 {
            var entries = entries
            self.entries = CompactArray()
            main.keep { slot in
                if entries[Int(slot)].place != .main { entries[Int(slot)].isListed = false }
                return entries[Int(slot)].isListed
            }
            self.entries = entries
        }
    }
}

extension DensityTinyLFUPolicy {
    /// Moves an entry that is in neither part into the main part, or evicts it.
    mutating func admit(_ slot: Slot, isUsed: Bool, victims: inout [Slot]) {
        let missing = used - capacity
        if missing > 0 {
            guard let end = contest(score(slot), missing: missing, isSure: isUsed) else {
                forget(slot)
                return victims.append(slot)
            }
            evictMain(from: end, &victims)
        }
        entries[Int(slot)].place = .main
        mainCount += 1
        if !entries[Int(slot)].isListed {
            entries[Int(slot)].isListed = true
            main.append(slot)
        }
    }

    /// Draws victims until they free `missing` bytes. Returns the index in ``main`` where they begin; nil if one of them scores at
    /// least as much as the candidate, or if there are none.
    private mutating func contest(_ score: Int, missing: Int, isSure: Bool) -> Int? {
        var end = main.count
        var missing = missing
        var draws = 0
        while missing > 0 {
            draws += 1
            guard draws <= 8 + credit, let least = drawLeast(&end), isSure || least < score else {
                credit = max(0, credit - draws + 1)
                return nil
            }
            missing -= size(main[end])
        }
        return end
    }

    /// Draws entries before `end`, moves the one with the lowest score to the end and lowers `end` to it.
    mutating func drawLeast(_ end: inout Int) -> Int? {
        let now = self.now
        var least = Int.max
        var index = -1
        var drawn = 0
        while drawn < Self.samples, end > 0 {
            let candidate = random.next(below: end)
            let slot = main[candidate]
            guard entries[Int(slot)].place == .main else {
                // An item that was left behind: the last valid item takes its place, and the last item of all takes that one's.
                entries[Int(slot)].isListed = false
                end -= 1
                main.swapAt(candidate, end)
                main.swapAt(end, main.count - 1)
                main.removeLast()
                if index == end { index = candidate }
                continue
            }
            drawn += 1
            let score = score(entries[Int(slot)], now: now)
            if score < least {
                least = score
                index = candidate
            }
        }
        guard index >= 0 else { return nil }
        end -= 1
        main.swapAt(index, end)
        return least
    }

    /// Evicts the entries in ``main`` from an index on.
    mutating func evictMain(from end: Int, _ victims: inout [Slot]) {
        while main.count > end {
            let slot = main[main.count - 1]
            main.removeLast()
            entries[Int(slot)].isListed = false
            mainCount -= 1
            forget(slot)
            victims.append(slot)
        }
    }

    private func score(_ slot: Slot) -> Int { score(entries[Int(slot)], now: now) }

    @inline(__always)
    private func score(_ entry: DensityEntry, now: UInt32) -> Int {
        DensityWeight.score(entry.weight(at: now), size: entry.size, beta: beta)
    }
}

/// The slots in a window, first in, first out; every step is O(1) on average.
///
/// A slot that leaves early leaves its item behind; the queue's user skips it.
struct WindowQueue: Sendable {
    private var slots = CompactArray<UInt32>()
    private var head = 0

    /// The bytes of memory used.
    var bytes: Int { slots.bytes }
    /// The number of items, including those left behind.
    var count: Int { slots.count - head }

    /// Appends an item.
    mutating func append(_ slot: UInt32) { slots.append(slot) }

    /// Removes the first item.
    mutating func popFirst() -> UInt32? {
        guard head < slots.count else { return nil }
        let slot = slots[head]
        head += 1
        if head > 16 + slots.count / 16 { flush() }
        return slot
    }

    /// Keeps the items for which `isKept` is true, asked in order.
    mutating func keep(where isKept: (UInt32) -> Bool) {
        flush()
        slots.keep(where: isKept)
    }

    private mutating func flush() {
        slots.removeFirst(head)
        head = 0
    }
}

/// Random numbers for a policy: the same for the same seed (xorshift64, Marsaglia 2003).
package struct PolicyRandom: Sendable, Equatable {
    private var state: UInt64

    /// A generator that depends only on `seed`.
    package init(seed: UInt64) {
        let mixed = (seed &+ 0x9E37_79B9_7F4A_7C15) &* 0xBF58_476D_1CE4_E5B9
        // The generator is stuck at 0.
        state = (mixed ^ mixed >> 31) | 1 << 63
    }

    /// A number from 0 to `count` - 1; `count` is 1 to 2^32 - 1.
    package mutating func next(below count: Int) -> Int {
        state ^= state << 13
        state ^= state >> 7
        state ^= state << 17
        return Int(truncatingIfNeeded: ((state >> 32) &* UInt64(truncatingIfNeeded: count)) >> 32)
    }
}
