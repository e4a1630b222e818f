// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// A disk store's admission and reclaim as a policy: a store's own rules over segments without a disk.
///
/// Dead bytes count against the capacity, and so do the segments being written and those kept back. Headers and keys of
/// records are not counted. Entries of 4 GiB and more are not held. A call takes time proportional to the entries of the
/// segments it reclaims.
struct SegmentedPolicy: EvictionPolicy {
    private(set) var capacity: Int
    private(set) var used = 0
    private(set) var count = 0
    private(set) var bytesMoved = 0
    private(set) var shape: SegmentShape
    private let fixedShape: Bool

    private var entries = SegmentedTable()
    private var segments: [ModelSegment?] = []
    /// The sealed segments of each log, from the oldest to the newest.
    private var sealed: [[UInt16]] = [[], []]
    private var open: [UInt16?] = [nil, nil]
    /// Bytes of all segments and blobs.
    private(set) var occupied = 0
    private var free: [UInt16] = []
    private var ghosts = SegmentGhosts()
    /// What the rules of density know; nil where ``ReclaimJudge`` rules, which goes by hits.
    private var density: SegmentDensity?

    /// Which rules say what is carried.
    enum Rule: Sendable, Hashable {
        /// ``ReclaimJudge``'s.
        case hits
        /// ``CarryJudge``'s.
        case density(seed: UInt64)

        /// The segments into which it divides the capacity.
        var segmentCount: Int { self == .hits ? 64 : 256 }
    }

    private let rule: Rule

    /// A policy for so many bytes; a negative number means 0.
    ///
    /// - Parameters:
    ///   - shape: how segments are cut; nil: as the capacity has it.
    init(capacity: Int, rule: Rule = .hits, shape: SegmentShape? = nil) {
        self.capacity = max(0, capacity)
        self.rule = rule
        self.shape = shape ?? SegmentShape(capacity: capacity, count: rule.segmentCount)
        fixedShape = shape != nil
        if case .density(let seed) = rule {
            density = SegmentDensity(capacity: self.capacity, segmentSize: self.shape.segmentSize, seed: seed)
        }
    }

    var metadataBytes: Int {
        let lists = segments.reduce(0) { $0 + ($1?.entries.capacity ?? 0) * 4 }
        let rules = ghosts.bytes + (density?.bytes ?? 0)
        return entries.bytes + lists + rules + segments.capacity * MemoryLayout<ModelSegment?>.stride
    }

    func holds(_ slot: Slot) -> Bool {
        slot < entries.count && entries[Int(slot)].segment != nil
    }

    mutating func use(_ slot: Slot) {
        guard holds(slot) else { return }
        entries[Int(slot)].uses += 1
        guard density != nil else { return }
        let (entry, capacity, expected) = (entries[Int(slot)], capacity, expected)
        if let mark = density?.noteUse(entry, capacity: capacity, expected: expected) { entries[Int(slot)].mark = mark }
    }

    mutating func insert(_ slot: Slot, key: UInt64, size: Int, victims: inout [Slot]) {
        let hash = UInt32(truncatingIfNeeded: key)
        let size = max(0, size)
        let (most, expected) = (capacity, expected)
        let mark = density?.noteMiss(hash, size: size, capacity: most, expected: expected)
        guard let stored = UInt32(exactly: size), size <= capacity else { return victims.append(slot) }
        let kind: LogKind = density == nil && ghosts.takes(hash) ? .main : .small
        guard makeRoom(size, in: kind, &victims) else { return victims.append(slot) }
        while entries.count <= slot { entries.append() }
        entries[Int(slot)] = SegmentedEntry()
        entries[Int(slot)].hash = hash
        entries[Int(slot)].size = stored
        entries[Int(slot)].mark = mark ?? 0
        place(slot, in: kind)
        used += size
        count += 1
        let keys = min(2 * count, self.expected)
        density?.frequencies.fit(keys: keys)
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
        density?.frequencies.noteGone(entries[Int(slot)].hash, entries[Int(slot)].mark)
        entries[Int(slot)].segment = nil
        segments[Int(segment)]?.live -= 1
        compact(segment)
        // A sealed segment in which nothing is left goes at once.
        guard let kind = segments[Int(segment)]?.kind.rawValue, segments[Int(segment)]?.weight == 0,
            let position = sealed[Int(kind)].firstIndex(of: segment)
        else { return }
        sealed[Int(kind)].remove(at: position)
        segments[Int(segment)] = nil
        free.append(segment)
    }

    mutating func resize(_ slot: Slot, to size: Int, victims: inout [Slot]) {
        guard holds(slot), size != Int(entries[Int(slot)].size) else { return }
        // A new record takes the place of the old one, whose bytes are dead.
        let (hash, mark) = (entries[Int(slot)].hash, entries[Int(slot)].mark)
        remove(slot)
        guard let stored = UInt32(exactly: max(0, size)), size <= capacity, makeRoom(size, in: .main, &victims) else {
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
        // Segments that are there keep their size, new ones have the new one.
        if !fixedShape { shape = SegmentShape(capacity: self.capacity, count: rule.segmentCount) }
        density?.setCapacity(self.capacity, segmentSize: shape.segmentSize)
        while count > 0, used > self.capacity || occupied > room(), reclaim(&victims) {}
    }

    // MARK: Rules

    /// The entries that the capacity will hold, going by those held.
    private var expected: Int {
        guard count >= 32, used > 0, used < capacity else { return count }
        return Int(min(Double(count) * Double(capacity) / Double(used), 1e9))
    }

    /// How many evicted keys are remembered.
    private var ghostReach: Int { Shard.ghostsPerEntry * count }

    /// The bytes that entries may occupy.
    private func room() -> Int {
        let openBytes = open.reduce(0) { sum, slot in
            sum + max(0, shape.openSize - (slot.flatMap { segments[Int($0)]?.tail } ?? shape.openSize))
        }
        return capacity - shape.reserve - openBytes
    }

    private mutating func makeRoom(_ size: Int, in kind: LogKind, _ victims: inout [Slot]) -> Bool {
        let bytes = max(1, size)
        while !fits(bytes, in: kind) {
            guard reclaim(&victims) else { return fits(bytes, in: kind) }
        }
        return true
    }

    private func fits(_ bytes: Int, in kind: LogKind) -> Bool {
        // Segments of which hardly anything is left are reclaimed before there are too many to tell apart.
        guard hasSegmentsLeft(2) else { return false }
        // What an open segment has left is counted already.
        if !isBlob(bytes), let slot = open[Int(kind.rawValue)], let segment = segments[Int(slot)],
            segment.tail + bytes <= shape.openSize, occupied <= room()
        {
            return true
        }
        return occupied + (isBlob(bytes) ? bytes : max(bytes, shape.openSize)) <= room()
    }

    /// Reclaims one segment; false when there is none.
    private mutating func reclaim(_ victims: inout [Slot]) -> Bool {
        if sealed[0].isEmpty, sealed[1].isEmpty {
            guard let kind = [LogKind.small, .main].first(where: { open[Int($0.rawValue)] != nil }) else {
                return false
            }
            seal(kind)
        }
        let small = weight(.small)
        let (canTakeSmall, canTakeMain) = (!sealed[0].isEmpty, !sealed[1].isEmpty)
        let total = small + weight(.main)
        let chosen =
            if let window = density?.trials.share {
                CarryJudge.log(
                    small: small,
                    total: total,
                    window: window,
                    canTakeSmall: canTakeSmall,
                    canTakeMain: canTakeMain
                )
            } else {
                ReclaimJudge.log(small: small, total: total, canTakeSmall: canTakeSmall, canTakeMain: canTakeMain)
            }
        guard let kind = chosen else { return false }
        let slot = sealed[Int(kind.rawValue)].removeFirst()
        guard let segment = segments[Int(slot)] else { return true }
        let live = liveEntries(of: slot, among: segment.entries)
        segments[Int(slot)]?.entries = []
        let carried =
            density == nil
            ? byHits(live, of: kind, in: segment, &victims) : byDensity(live, in: segment, &victims)
        occupied -= segments[Int(slot)]?.weight ?? 0
        segments[Int(slot)] = nil
        free.append(slot)
        for (item, hits) in carried {
            guard hasSegmentsLeft(1) else {
                // Written into segments that have become smaller: what finds no more of them goes.
                used -= Int(entries[Int(item)].size)
                count -= 1
                density?.frequencies.noteGone(entries[Int(item)].hash, entries[Int(item)].mark)
                entries[Int(item)].segment = nil
                victims.append(item)
                continue
            }
            let bytes = cost(entries[Int(item)].size)
            if !isBlob(bytes) { bytesMoved += bytes }
            entries[Int(item)].uses = hits
            place(item, in: .main)
        }
        return true
    }

    /// Which entries of a segment are carried, and with how many hits; the others go.
    private mutating func byHits(
        _ live: [Slot],
        of kind: LogKind,
        in segment: ModelSegment,
        _ victims: inout [Slot]
    ) -> [(slot: Slot, hits: UInt8)] {
        var judge = ReclaimJudge(of: kind, weight: segment.weight)
        var carried: [(slot: Slot, hits: UInt8)] = []
        for item in live {
            let entry = entries[Int(item)]
            switch judge.judge(row(entry), isUseless: false, weight: cost(entry.size)) {
            case .carry(let hits): carried.append((item, hits))
            case .evict(let isRemembered):
                if isRemembered { ghosts.note(entry.hash, reach: ghostReach) }
                remove(item)
                victims.append(item)
            case .drop: break
            }
        }
        return carried
    }

    private mutating func byDensity(
        _ live: [Slot],
        in segment: ModelSegment,
        _ victims: inout [Slot]
    ) -> [(slot: Slot, hits: UInt8)] {
        guard var density else { return [] }
        self.density = nil
        if density.wantsBar { density.setBar(by: sample(&density.random, density.frequencies), count: count) }
        let candidates = live.map { item in
            let entry = entries[Int(item)]
            let bytes = cost(entry.size)
            let score = CarryJudge.score(weight: density.frequencies.weight(entry.mark), bytes: bytes, hash: entry.hash)
            return isBlob(bytes)
                ? CarryJudge.Candidate(score: score, recordBytes: 0, blobBytes: bytes)
                : CarryJudge.Candidate(score: score, recordBytes: bytes)
        }
        let verdicts = density.judge.carried(
            of: candidates,
            bar: density.bar,
            recordBytes: segment.tail,
            blobBytes: segment.blobBytes
        )
        self.density = density
        var carried: [(slot: Slot, hits: UInt8)] = []
        for (item, isCarried) in zip(live, verdicts) {
            if isCarried {
                carried.append((item, 0))
            } else {
                remove(item)
                victims.append(item)
            }
        }
        return carried
    }

    /// Scores and bytes of entries drawn from all segments, each with the same chance.
    private func sample(
        _ random: inout PolicyRandom,
        _ frequencies: KeyFrequencies
    ) -> [(score: Int, bytes: Int)] {
        var ends: [(end: Int, segment: UInt16)] = []
        for (slot, segment) in segments.enumerated() where segment?.entries.isEmpty == false {
            ends.append(((ends.last?.end ?? 0) + (segment?.entries.count ?? 0), UInt16(truncatingIfNeeded: slot)))
        }
        guard let total = ends.last?.end, total < UInt32.max else { return [] }
        var sample: [(score: Int, bytes: Int)] = []
        for _ in 0..<CarryJudge.sampleSize {
            let place = random.next(below: total)
            var (low, high) = (0, ends.count - 1)
            while low < high {
                let middle = (low + high) / 2
                if ends[middle].end > place { high = middle } else { low = middle + 1 }
            }
            guard let list = segments[Int(ends[low].segment)]?.entries else { continue }
            let slot = list[list.count - (ends[low].end - place)]
            let entry = entries[Int(slot)]
            guard entry.segment == ends[low].segment else { continue }
            let bytes = cost(entry.size)
            let weight = frequencies.weight(entry.mark)
            sample.append((CarryJudge.score(weight: weight, bytes: bytes, hash: entry.hash), bytes))
        }
        return sample
    }

    /// What the judge looks at.
    private func row(_ entry: SegmentedEntry) -> IndexRow {
        let place = RecordPlace(slot: entry.segment ?? 0, unit: 0, units: 0)
        return IndexRow(fragment: UInt64(entry.hash), variant: 0, place: place, order: 1, hits: entry.uses)
    }

    // MARK: Places

    /// The entries of a list that lie in a segment, each once, where it stands first.
    private mutating func liveEntries(of segment: UInt16, among list: [Slot]) -> [Slot] {
        var live: [Slot] = []
        for item in list where entries[Int(item)].segment == segment && !entries[Int(item)].isMet {
            entries[Int(item)].isMet = true
            live.append(item)
        }
        for item in live { entries[Int(item)].isMet = false }
        return live
    }

    /// Forgets those that have left once they are the most: entries that come and go fill no segment if they lie beside it.
    private mutating func compact(_ slot: UInt16) {
        guard let segment = segments[Int(slot)], segment.entries.count > 2 * segment.live + 64 else { return }
        let live = liveEntries(of: slot, among: segment.entries)
        segments[Int(slot)]?.entries = live
    }

    /// Whether so many segments more can be told apart.
    private func hasSegmentsLeft(_ wanted: Int) -> Bool {
        free.count + SegmentedEntry.maximumSegments - segments.count >= wanted
    }

    /// The bytes that an entry takes: none takes nothing.
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
        // Without the room it grew into.
        if let list = segments[Int(slot)]?.entries { segments[Int(slot)]?.entries = Array(list) }
    }
}
