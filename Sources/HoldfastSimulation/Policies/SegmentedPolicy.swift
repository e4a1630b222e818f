// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastStorage

/// A disk store's admission and reclaiming as a policy: the store's own rules for segments, without a disk.
///
/// Dead bytes count against the capacity, and so do segments that are being written or kept in reserve. Headers and keys of records
/// are not counted. Entries of 4 GiB and more are not held. A call takes time proportional to the entries in the segments that it
/// reclaims.
struct SegmentedPolicy: EvictionPolicy {
    private(set) var capacity: Int
    private(set) var used = 0
    private(set) var count = 0
    private(set) var bytesMoved = 0
    private(set) var shape: SegmentShape
    private let fixedShape: Bool

    private var entries = SegmentedTable()
    private var segments: [ModelSegment?] = []
    /// The sealed segments of each log, oldest first.
    private var sealed: [[UInt16]] = [[], []]
    private var open: [UInt16?] = [nil, nil]
    /// Bytes of all segments and blobs.
    private(set) var occupied = 0
    private var free: [UInt16] = []
    private var frequencies: KeyFrequencies
    private var trials: WindowTuner
    private var retention: RetentionPolicy
    private var random: PolicyRandom
    /// The lowest score that is carried.
    private var bar = Int.min
    /// Requests until the next bar is due. One for each reclaim, as in a store, is more than segments of a single entry need.
    private var barLife = 0

    /// A policy with this capacity in bytes; a negative number means 0.
    ///
    /// - Parameters:
    ///   - shape: the size of segments and related limits; nil: derived from the capacity.
    init(capacity: Int, seed: UInt64 = 0, shape: SegmentShape? = nil) {
        self.capacity = max(0, capacity)
        self.shape = shape ?? SegmentShape(capacity: capacity)
        fixedShape = shape != nil
        frequencies = KeyFrequencies(seed: seed)
        trials = WindowTuner(beta: RetentionPolicy.beta, seed: seed)
        retention = RetentionPolicy(capacity: self.capacity, segmentSize: self.shape.segmentSize)
        random = PolicyRandom(seed: seed &+ 1)
    }

    var metadataBytes: Int {
        let lists = segments.reduce(0) { $0 + ($1?.entries.capacity ?? 0) * 4 }
        let rules = frequencies.bytes + trials.bytes
        return entries.bytes + lists + rules + segments.capacity * MemoryLayout<ModelSegment?>.stride
    }

    func holds(_ slot: Slot) -> Bool {
        slot < entries.count && entries[Int(slot)].segment != nil
    }

    mutating func use(_ slot: Slot) {
        guard holds(slot) else { return }
        let entry = entries[Int(slot)]
        let mark = frequencies.noteUse(entry.mark)
        entries[Int(slot)].mark = mark
        tryOut(entry.hash, size: Int(entry.size), mark: mark)
    }

    mutating func insert(_ slot: Slot, key: UInt64, size: Int, victims: inout [Slot]) {
        let hash = UInt32(truncatingIfNeeded: key)
        let size = max(0, size)
        let mark = frequencies.noteMiss(hash)
        tryOut(hash, size: size, mark: mark)
        guard let stored = UInt32(exactly: size), size <= capacity else { return victims.append(slot) }
        guard makeRoom(size, in: .small, victims: &victims) else { return victims.append(slot) }
        while entries.count <= slot { entries.append() }
        entries[Int(slot)] = SegmentedEntry()
        entries[Int(slot)].hash = hash
        entries[Int(slot)].size = stored
        entries[Int(slot)].mark = mark
        place(slot, in: .small)
        used += size
        count += 1
        frequencies.fit(held: count, used: used, capacity: capacity)
    }

    private mutating func tryOut(_ hash: UInt32, size: Int, mark: UInt8) {
        barLife -= 1
        guard trials.samples(hash) else { return }
        trials.note(
            hash,
            size: size,
            weight: frequencies.weight(mark),
            now: frequencies.now,
            capacity: capacity,
            expected: WindowTuner.expected(held: count, used: used, capacity: capacity)
        )
    }

    mutating func remove(_ slot: Slot) {
        guard holds(slot), let segment = entries[Int(slot)].segment else { return }
        let bytes = cost(entries[Int(slot)].size)
        if isBlob(bytes) {
            segments[Int(segment)]?.blobBytes -= bytes
            occupied -= bytes
        }
        used -= Int(entries[Int(slot)].size)
        count -= 1
        frequencies.noteGone(entries[Int(slot)].hash, mark: entries[Int(slot)].mark)
        entries[Int(slot)].segment = nil
        segments[Int(segment)]?.live -= 1
        compact(segment)
        // A sealed segment without live entries is freed at once.
        guard let kind = segments[Int(segment)]?.kind.rawValue, segments[Int(segment)]?.weight == 0,
            let position = sealed[Int(kind)].firstIndex(of: segment)
        else { return }
        sealed[Int(kind)].remove(at: position)
        segments[Int(segment)] = nil
        free.append(segment)
    }

    mutating func resize(_ slot: Slot, to size: Int, victims: inout [Slot]) {
        guard holds(slot), size != Int(entries[Int(slot)].size) else { return }
        // A new record replaces the old one, whose bytes are dead.
        let (hash, mark) = (entries[Int(slot)].hash, entries[Int(slot)].mark)
        remove(slot)
        guard let stored = UInt32(exactly: max(0, size)), size <= capacity, makeRoom(size, in: .main, victims: &victims)
        else {
            return victims.append(slot)
        }
        entries[Int(slot)].hash = hash
        entries[Int(slot)].mark = mark
        entries[Int(slot)].size = stored
        place(slot, in: .main)
        used += max(0, size)
        count += 1
    }

    mutating func setCapacity(_ capacity: Int, victims: inout [Slot]) {
        self.capacity = max(0, capacity)
        // Existing segments keep their size, new ones have the new size.
        if !fixedShape { shape = SegmentShape(capacity: self.capacity) }
        retention = RetentionPolicy(capacity: self.capacity, segmentSize: shape.segmentSize)
        var turns = 0
        while count > 0, used > self.capacity || occupied > room(), reclaim(turn: &turns, &victims) {}
    }

    // MARK: Rules

    /// The bytes that entries may occupy.
    private func room() -> Int {
        let openBytes = open.reduce(0) { sum, slot in
            sum + max(0, shape.openSize - (slot.flatMap { segments[Int($0)]?.tail } ?? shape.openSize))
        }
        return capacity - shape.reserve - openBytes
    }

    private mutating func makeRoom(_ size: Int, in kind: LogKind, victims: inout [Slot]) -> Bool {
        let bytes = max(1, size)
        var turns = 0
        while !fits(bytes, in: kind) {
            guard reclaim(turn: &turns, &victims) else { return fits(bytes, in: kind) }
        }
        return true
    }

    private func fits(_ bytes: Int, in kind: LogKind) -> Bool {
        // Nearly empty segments are reclaimed before there are too many to number.
        guard hasSegmentsLeft(2) else { return false }
        // The rest of an open segment is already counted.
        if !isBlob(bytes), let slot = open[Int(kind.rawValue)], let segment = segments[Int(slot)],
            segment.tail + bytes <= shape.openSize, occupied <= room()
        {
            return true
        }
        return occupied + (isBlob(bytes) ? bytes : max(bytes, shape.openSize)) <= room()
    }

    /// Reclaims one segment; false if there is none.
    ///
    /// - Parameter turns: how many were reclaimed for the same request, including this one. As in a store, nothing is carried once
    ///   every segment has been examined: otherwise the little that is left could be carried back and forth.
    private mutating func reclaim(turn turns: inout Int, _ victims: inout [Slot]) -> Bool {
        turns += 1
        let dropsAll = turns > segments.count - free.count + 2
        if sealed[0].isEmpty, sealed[1].isEmpty {
            guard let kind = [LogKind.small, .main].first(where: { open[Int($0.rawValue)] != nil }) else {
                return false
            }
            seal(kind)
        }
        let small = weight(.small)
        let (canTakeSmall, canTakeMain) = (!sealed[0].isEmpty, !sealed[1].isEmpty)
        let total = small + weight(.main)
        let chosen = RetentionPolicy.log(
            small: small,
            total: total,
            window: trials.share,
            canTakeSmall: canTakeSmall,
            canTakeMain: canTakeMain,
            isMainDead: isMainDead()
        )
        guard let kind = chosen else { return false }
        let slot = sealed[Int(kind.rawValue)].removeFirst()
        guard let segment = segments[Int(slot)] else { return true }
        let live = liveEntries(of: slot, among: segment.entries)
        segments[Int(slot)]?.entries = []
        let carried = carried(of: live, in: segment, dropsAll: dropsAll, &victims)
        occupied -= segments[Int(slot)]?.weight ?? 0
        segments[Int(slot)] = nil
        free.append(slot)
        for item in carried {
            guard hasSegmentsLeft(1) else {
                // Segments may have become smaller: entries for which there is no segment left are evicted.
                used -= Int(entries[Int(item)].size)
                count -= 1
                frequencies.noteGone(entries[Int(item)].hash, mark: entries[Int(item)].mark)
                entries[Int(item)].segment = nil
                victims.append(item)
                continue
            }
            let bytes = cost(entries[Int(item)].size)
            if !isBlob(bytes) { bytesMoved += bytes }
            place(item, in: .main)
        }
        return true
    }

    /// Whether the main log's oldest segment is mostly dead.
    private mutating func isMainDead() -> Bool {
        guard let slot = sealed[Int(LogKind.main.rawValue)].first, let segment = segments[Int(slot)] else {
            return false
        }
        let live = liveEntries(of: slot, among: segment.entries).reduce(0) { sum, item in
            let bytes = cost(entries[Int(item)].size)
            return isBlob(bytes) ? sum : sum + bytes
        }
        return RetentionPolicy.isMostlyDead(live: live, recordBytes: segment.tail, blobBytes: segment.blobBytes)
    }

    /// Which entries of a segment are carried; the others are evicted.
    private mutating func carried(
        of live: [Slot],
        in segment: ModelSegment,
        dropsAll: Bool,
        _ victims: inout [Slot]
    ) -> [Slot] {
        if barLife <= 0 {
            bar = RetentionPolicy.bar(of: sample())
            barLife = count / 128 + 8
        }
        let candidates = live.map { item in
            let bytes = cost(entries[Int(item)].size)
            let score = score(entries[Int(item)])
            return isBlob(bytes)
                ? RetentionPolicy.Candidate(score: score, recordBytes: 0, blobBytes: bytes)
                : RetentionPolicy.Candidate(score: score, recordBytes: bytes)
        }
        let verdicts = retention.carried(
            of: candidates,
            bar: bar,
            recordBytes: segment.tail,
            blobBytes: segment.blobBytes
        )
        var carried: [Slot] = []
        for (item, isCarried) in zip(live, verdicts) {
            if isCarried, !dropsAll {
                carried.append(item)
            } else {
                remove(item)
                victims.append(item)
            }
        }
        return carried
    }

    private func score(_ entry: SegmentedEntry) -> Int {
        RetentionPolicy.score(weight: frequencies.weight(entry.mark), bytes: cost(entry.size), hash: entry.hash)
    }

    /// Scores and bytes of entries drawn from all segments.
    private mutating func sample() -> [(score: Int, bytes: Int)] {
        let counts = segments.map { $0?.entries.count ?? 0 }
        var sample: [(score: Int, bytes: Int)] = []
        for (segment, draws) in RetentionPolicy.draws(from: counts, using: &random).enumerated() {
            for number in 0..<draws {
                let place = draws == counts[segment] ? number : random.next(below: counts[segment])
                guard let slot = segments[segment]?.entries[place] else { continue }
                let entry = entries[Int(slot)]
                guard entry.segment.map(Int.init) == segment else { continue }
                sample.append((score(entry), cost(entry.size)))
            }
        }
        return sample
    }

    // MARK: Places

    /// The entries of a list that are in a segment, each once, at their first occurrence.
    private mutating func liveEntries(of segment: UInt16, among list: [Slot]) -> [Slot] {
        var live: [Slot] = []
        for item in list where entries[Int(item)].segment == segment && !entries[Int(item)].isMet {
            entries[Int(item)].isMet = true
            live.append(item)
        }
        for item in live { entries[Int(item)].isMet = false }
        return live
    }

    /// Drops the entries that have left once they are the majority: entries stored beside a segment do not fill it as they come and
    /// go.
    private mutating func compact(_ slot: UInt16) {
        guard let segment = segments[Int(slot)], segment.entries.count > 2 * segment.live + 64 else { return }
        let live = liveEntries(of: slot, among: segment.entries)
        segments[Int(slot)]?.entries = live
    }

    /// Whether there are numbers for this many more segments.
    private func hasSegmentsLeft(_ wanted: Int) -> Bool {
        free.count + SegmentedEntry.maximumSegments - segments.count >= wanted
    }

    /// The bytes that an entry takes; never 0.
    private func cost(_ size: UInt32) -> Int { Int(max(1, size)) }

    private func isBlob(_ bytes: Int) -> Bool { bytes > shape.inlineLimit }

    private func weight(_ kind: LogKind) -> Int {
        let index = Int(kind.rawValue)
        let sum = sealed[index].reduce(0) { $0 + (segments[Int($1)]?.weight ?? 0) }
        return sum + (open[index].flatMap { segments[Int($0)]?.weight } ?? 0)
    }

    private mutating func place(_ slot: Slot, in kind: LogKind) {
        let index = Int(kind.rawValue)
        let bytes = cost(entries[Int(slot)].size)
        if let last = open[index], let segment = segments[Int(last)] {
            let isFull =
                isBlob(bytes) ? segment.blobBytes >= shape.segmentSize : segment.tail + bytes > shape.segmentSize
            if isFull || segment.blobBytes >= shape.segmentSize { seal(kind) }
        }
        let place = open[index] ?? begin(kind)
        segments[Int(place)]?.entries.append(slot)
        segments[Int(place)]?.live += 1
        if isBlob(bytes) { segments[Int(place)]?.blobBytes += bytes } else { segments[Int(place)]?.tail += bytes }
        occupied += bytes
        entries[Int(slot)].segment = place
    }

    private mutating func begin(_ kind: LogKind) -> UInt16 {
        var segment = ModelSegment()
        segment.kind = kind
        let slot = free.popLast() ?? UInt16(truncatingIfNeeded: segments.count)
        if slot < segments.count { segments[Int(slot)] = segment } else { segments.append(segment) }
        open[Int(kind.rawValue)] = slot
        return slot
    }

    private mutating func seal(_ kind: LogKind) {
        guard let slot = open[Int(kind.rawValue)] else { return }
        sealed[Int(kind.rawValue)].append(slot)
        open[Int(kind.rawValue)] = nil
        // Copied, without the extra capacity.
        if let list = segments[Int(slot)]?.entries { segments[Int(slot)]?.entries = Array(list) }
    }
}

/// How a log of segments divides its capacity; corresponds to a store's geometry.
struct SegmentShape: Sendable, Hashable {
    /// Bytes of a segment; at least 1.
    let segmentSize: Int
    /// The longest entry inside a segment; longer ones are stored beside it, are not copied, and free their bytes at once.
    let inlineLimit: Int
    /// The size of a segment's file while it is being written, however little it contains.
    let openSize: Int
    /// Bytes in reserve: a segment to carry into, and one made in advance.
    let reserve: Int

    init(segmentSize: Int, inlineLimit: Int, openSize: Int, reserve: Int) {
        (self.segmentSize, self.inlineLimit) = (segmentSize, inlineLimit)
        (self.openSize, self.reserve) = (openSize, reserve)
    }

    /// 256 segments, as in a store of 256 MiB or more.
    init(capacity: Int) {
        openSize = max(0, capacity) / 256
        segmentSize = max(1, openSize)
        inlineLimit = segmentSize / 8
        reserve = 2 * openSize
    }
}

/// What ``SegmentedPolicy`` knows about the entry in a slot.
struct SegmentedEntry: Sendable {
    fileprivate static let absent: UInt16 = 0x1FFF

    /// 32 bits of the key's hash.
    var hash: UInt32 = 0
    /// Bytes.
    var size: UInt32 = 0
    /// How often it was requested recently, see ``KeyFrequencies``.
    var mark: UInt8 = 0
    /// 13 bits for the segment's slot, 1 for whether it was met.
    fileprivate var bits = SegmentedEntry.absent

    /// The most segments at once, as in a store; slots up to ``absent`` would fit.
    static let maximumSegments = 4_095

    /// The slot of the entry's segment, below ``maximumSegments``; nil if it is not held.
    var segment: UInt16? {
        get { bits & Self.absent == Self.absent ? nil : bits & Self.absent }
        set { bits = bits & ~Self.absent | (newValue ?? Self.absent) }
    }

    /// Whether it was already met in the current pass over its segment.
    var isMet: Bool {
        get { bits & 1 << 15 != 0 }
        set { bits = newValue ? bits | 1 << 15 : bits & ~(1 << 15) }
    }
}

/// The entries by slot, in 11 bytes each.
struct SegmentedTable: Sendable {
    private var keys = CompactArray<UInt64>()
    private var states = CompactArray<UInt16>()
    private var marks = CompactArray<UInt8>()

    /// The bytes of memory used.
    var bytes: Int { keys.bytes + states.bytes + marks.bytes }
    /// One more than the highest slot.
    var count: Int { keys.count }

    /// Appends an empty slot.
    mutating func append() {
        keys.append(0)
        states.append(SegmentedEntry.absent)
        marks.append(0)
    }

    subscript(_ slot: Int) -> SegmentedEntry {
        get {
            var entry = SegmentedEntry()
            entry.hash = UInt32(truncatingIfNeeded: keys[slot] >> 32)
            entry.size = UInt32(truncatingIfNeeded: keys[slot])
            entry.bits = states[slot]
            entry.mark = marks[slot]
            return entry
        }
        set {
            keys[slot] = UInt64(newValue.hash) << 32 | UInt64(newValue.size)
            states[slot] = newValue.bits
            marks[slot] = newValue.mark
        }
    }
}

/// A segment of ``SegmentedPolicy``.
struct ModelSegment: Sendable {
    var kind = LogKind.small
    /// Bytes written to it, including dead ones.
    var tail = 0
    /// Bytes of its entries' blobs that still exist.
    var blobBytes = 0
    /// The entries written to it, in order; some may have left.
    var entries: [UInt32] = []
    /// How many of them are still there.
    var live = 0

    /// The most that reclaiming it can free.
    var weight: Int { tail + blobBytes }
}
