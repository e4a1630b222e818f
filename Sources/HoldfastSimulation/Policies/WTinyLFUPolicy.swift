// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastStorage

/// Puts new entries into an LRU window, and moves an entry that leaves it into the main part only if it was requested more often
/// than the entry that would have to leave.
///
/// W-TinyLFU of Einziger, Friedman and Manes, "TinyLFU: a highly efficient cache admission policy" (TOS 2017), with the adaptive
/// window of Einziger et al., "Adaptive software cache management" (Middleware 2018). The window begins with a hundredth of the
/// bytes; the main part is a segmented LRU, four fifths of it for entries used there again. After ten times as many requests as the
/// sketch has room for entries, the window moves by a sixteenth of the capacity, and back again if the hit ratio fell; each step is
/// a fiftieth shorter than the previous one unless the hit ratio changed by 0.05.
///
/// The study's model has a sketch of up to 16 bytes for each entry, this one stays below 24 in total; the mean over the study's
/// traces is 0.3 points lower for that. The window's path depends on chance: another hash changes single cells by some points.
///
/// A use moves an entry in a list. 17 bytes for each entry and 6 for the sketch; every step O(1).
struct WTinyLFUPolicy: EvictionPolicy {
    private enum Part: UInt8, Sendable { case window, probation, protected }

    private struct Segment: Sendable {
        var ends = SlotLinks.Ends()
        var bytes = 0
    }

    private(set) var capacity: Int
    private var sizes = SlotSizes()
    private var links = SlotLinks()
    private var window = Segment()
    private var probation = Segment()
    private var protected = Segment()
    private var parts: [Part] = []
    private var hashes: [UInt32] = []
    private var popularity = AgingPopularity()
    private var climber: HillClimber

    /// A policy with this capacity in bytes; a negative number means 0.
    init(capacity: Int) {
        self.capacity = max(0, capacity)
        climber = HillClimber(capacity: self.capacity)
    }

    var used: Int { sizes.sum }
    var count: Int { sizes.count }
    var metadataBytes: Int {
        sizes.bytes + links.bytes + parts.capacity + hashes.capacity * 4 + popularity.bytes
    }

    func holds(_ slot: Slot) -> Bool { sizes.holds(slot) }

    mutating func use(_ slot: Slot) {
        guard holds(slot) else { return }
        popularity.count(hashes[Int(slot)])
        switch parts[Int(slot)] {
        case .window: move(slot, to: .window)
        case .probation, .protected: move(slot, to: .protected)
        }
        demote()
        climb(isHit: true)
    }

    mutating func insert(_ slot: Slot, key: UInt64, size: Int, victims: inout [Slot]) {
        let size = max(0, size)
        guard size <= capacity else { return victims.append(slot) }
        // Entries for which the rest leaves no room are evicted before the sum could overflow.
        makeRoom(upTo: Int.max - size, &victims)
        let hash = UInt32(truncatingIfNeeded: key >> 32)
        if popularity.isTight(for: count + 1) { popularity.grow(to: count + 1, keeping: heldHashes) }
        popularity.count(hash)
        sizes.set(slot, size: size)
        hashes.extend(through: slot, with: 0)
        hashes[Int(slot)] = hash
        parts.extend(through: slot, with: .window)
        link(slot, to: .window)
        evict(&victims)
        climb(isHit: false)
    }

    mutating func remove(_ slot: Slot) {
        guard holds(slot) else { return }
        unlink(slot)
        sizes.remove(slot)
    }

    mutating func resize(_ slot: Slot, to size: Int, victims: inout [Slot]) {
        guard holds(slot) else { return }
        let size = max(0, size)
        if size > capacity {
            remove(slot)
            return victims.append(slot)
        }
        let part = parts[Int(slot)]
        remove(slot)
        makeRoom(upTo: capacity - size, &victims)
        sizes.set(slot, size: size)
        link(slot, to: part)
        demote()
    }

    mutating func setCapacity(_ capacity: Int, victims: inout [Slot]) {
        self.capacity = max(0, capacity)
        climber = HillClimber(capacity: self.capacity)
        demote()
        evict(&victims)
    }

    // MARK: Eviction

    /// Moves what does not fit into the window to probation, and compares each moved entry with the next one to evict.
    private mutating func evict(_ victims: inout [Slot]) {
        var next: Slot?
        while window.bytes > climber.window, let slot = window.ends.last {
            move(slot, to: .probation)
            next = next ?? slot
        }
        while used > capacity, let victim = nextVictim {
            guard let candidate = next else {
                drop(victim, victims: &victims)
                continue
            }
            // The moved entries are next to each other.
            next = links.before(candidate)
            let isBetter = popularity.estimate(hashes[Int(candidate)]) > popularity.estimate(hashes[Int(victim)])
            drop(candidate != victim && isBetter ? victim : candidate, victims: &victims)
        }
    }

    private mutating func makeRoom(upTo bytes: Int, _ victims: inout [Slot]) {
        while used > bytes, let victim = nextVictim { drop(victim, victims: &victims) }
    }

    private var nextVictim: Slot? { probation.ends.last ?? protected.ends.last ?? window.ends.last }

    private mutating func drop(_ slot: Slot, victims: inout [Slot]) {
        remove(slot)
        victims.append(slot)
    }

    /// Moves the least recently used protected entries back to probation until the rest fits.
    private mutating func demote() {
        while protected.bytes > climber.protected, let slot = protected.ends.last { move(slot, to: .probation) }
    }

    private mutating func climb(isHit: Bool) {
        guard climber.note(isHit: isHit, period: 10 * popularity.room) else { return }
        demote()
        while window.bytes > climber.window, let slot = window.ends.last { move(slot, to: .probation) }
    }

    // MARK: Segments

    private mutating func move(_ slot: Slot, to part: Part) {
        unlink(slot)
        link(slot, to: part)
    }

    private mutating func link(_ slot: Slot, to part: Part) {
        parts[Int(slot)] = part
        let size = sizes[slot]
        switch part {
        case .window:
            links.prepend(slot, to: &window.ends)
            window.bytes += size
        case .probation:
            links.prepend(slot, to: &probation.ends)
            probation.bytes += size
        case .protected:
            links.prepend(slot, to: &protected.ends)
            protected.bytes += size
        }
    }

    private mutating func unlink(_ slot: Slot) {
        let size = sizes[slot]
        switch parts[Int(slot)] {
        case .window:
            links.remove(slot, from: &window.ends)
            window.bytes -= size
        case .probation:
            links.remove(slot, from: &probation.ends)
            probation.bytes -= size
        case .protected:
            links.remove(slot, from: &protected.ends)
            protected.bytes -= size
        }
    }

    /// The hashes of the held entries.
    private var heldHashes: [UInt32] {
        hashes.indices.filter { sizes.holds(UInt32($0)) }.map { hashes[$0] }
    }
}

/// How often keys were requested, halved after ten requests for each entry that there is room for.
///
/// This way old popularity fades, so that keys that were popular long ago do not stay forever.
///
/// Room grows in powers of two, which also determine the time; the sketch has as many words up to 1,024, and beyond that three
/// quarters of a word for each entry. It grows by an eighth, and then takes over its estimates for held keys.
struct AgingPopularity: Sendable {
    /// The number of entries that there is room for: a power of two.
    private(set) var room = 64
    private var sketch = FrequencySketch(words: 64)
    private var counted = 0

    /// The bytes of memory used.
    var bytes: Int { sketch.bytes }

    /// Whether there should be more room for this many entries.
    func isTight(for entries: Int) -> Bool { entries > room || entries * 2 / 3 > sketch.count }

    /// Makes room for this many entries; the hashes are those of the held ones.
    mutating func grow(to entries: Int, keeping hashes: [UInt32]) {
        while room < entries { room *= 2 }
        var larger = FrequencySketch(words: max(min(room, 1_024), entries * 3 / 4))
        for hash in hashes { larger.raise(hash, to: sketch.estimate(hash)) }
        sketch = larger
    }

    /// Counts a request.
    mutating func count(_ hash: UInt32) {
        sketch.add(hash)
        counted += 1
        guard counted >= 10 * room else { return }
        sketch.halve()
        counted /= 2
    }

    /// How often a key was requested, up to 15.
    func estimate(_ hash: UInt32) -> Int { sketch.estimate(hash) }
}

/// Moves the border between window and protected part in the direction in which the hit ratio rises.
struct HillClimber: Sendable {
    /// Bytes of the window, and of the protected part.
    private(set) var window: Int
    private(set) var protected: Int

    private let longest: Double
    private let bounds: ClosedRange<Double>
    private var position: Double
    private var stride: Double
    private var hits = 0
    private var requests = 0
    private var ratio = 0.0

    /// A window of a hundredth of the capacity.
    init(capacity: Int) {
        window = capacity / 100
        protected = Int(Double(capacity - window) * 0.8)
        position = Double(window)
        longest = Double(capacity) / 16
        stride = -longest
        bounds = Double(capacity) * 0.005...Double(capacity) * 0.8
    }

    /// Records a request; returns whether the border moved, which happens once in this many requests.
    mutating func note(isHit: Bool, period: Int) -> Bool {
        requests += 1
        if isHit { hits += 1 }
        guard requests >= period else { return false }
        let change = Double(hits) / Double(requests) - ratio
        let step = change < 0 ? -stride : stride
        ratio += change
        (hits, requests) = (0, 0)
        stride = abs(change) < 0.05 ? step * 0.98 : step < 0 ? -longest : longest
        position = min(max(position + step, bounds.lowerBound), bounds.upperBound)
        protected = max(0, protected - (Int(position) - window))
        window = Int(position)
        return true
    }
}
