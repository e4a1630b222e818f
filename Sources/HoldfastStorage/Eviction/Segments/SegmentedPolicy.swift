// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The disk store's admission and reclaim as a policy: the same rules, ``ReclaimJudge`` and what it rests on, without a disk.
///
/// Dead bytes count against the capacity, and so do the segments being written and those kept back. Headers and keys of
/// records are not counted. Entries of 4 GiB and more are not held. A call takes time proportional to the entries of the
/// segments it reclaims.
struct SegmentedPolicy: EvictionPolicy {
    /// Which rules reclaim goes by.
    enum Rules: Sendable, Hashable {
        /// Those of the disk store.
        case worth
        /// Plain S3-FIFO (SOSP 2023) over segments, for comparison.
        case fifo
    }

    private(set) var capacity: Int
    private(set) var used = 0
    private(set) var count = 0
    private(set) var bytesMoved = 0
    let rules: Rules
    private(set) var shape: SegmentShape
    private let fixedShape: Bool

    var entries = SegmentedTable()
    var segments: [ModelSegment?] = []
    /// The sealed segments of each log, from the oldest to the newest.
    var sealed: [[UInt16]] = [[], []]
    var open: [UInt16?] = [nil, nil]
    /// Bytes of all segments and blobs.
    var occupied = 0
    var sketch = AgingSketch()
    var sample = WorthSample([], entries: 0)
    var random: PolicyRandom
    private var free: [UInt16] = []
    private var share = SmallLogShare()
    private var requests = 0
    private var hits = 0
    private var turn = 0
    /// Entries that left since the sample was drawn.
    private var changes = Int.max / 2
    private var ghosts = SegmentGhosts()

    /// A policy for so many bytes; a negative number means 0.
    ///
    /// - Parameters:
    ///   - shape: how segments are cut; nil: as the capacity has it.
    init(capacity: Int, rules: Rules, shape: SegmentShape? = nil, seed: UInt64 = 0) {
        self.capacity = max(0, capacity)
        self.rules = rules
        self.shape = shape ?? SegmentShape(capacity: capacity)
        fixedShape = shape != nil
        random = PolicyRandom(seed: seed)
    }

    var metadataBytes: Int {
        let lists = segments.reduce(0) { $0 + ($1?.entries.capacity ?? 0) * 4 }
        return entries.bytes + lists + sketch.bytes + ghosts.bytes + segments.capacity
            * MemoryLayout<ModelSegment?>.stride
    }

    func holds(_ slot: Slot) -> Bool {
        slot < entries.count && entries[Int(slot)].segment != nil
    }

    mutating func use(_ slot: Slot) {
        guard holds(slot) else { return }
        noteRequest(isHit: true, entries[Int(slot)].hash)
        entries[Int(slot)].uses += 1
    }

    mutating func insert(_ slot: Slot, key: UInt64, size: Int, victims: inout [Slot]) {
        let hash = UInt32(truncatingIfNeeded: key)
        noteRequest(isHit: false, hash)
        let size = max(0, size)
        guard let stored = UInt32(exactly: size), size <= capacity else { return victims.append(slot) }
        let kind = log(ofNew: hash, size: size)
        guard makeRoom(size, in: kind, &victims) else { return victims.append(slot) }
        while entries.count <= slot { entries.append() }
        entries[Int(slot)] = SegmentedEntry()
        entries[Int(slot)].hash = hash
        entries[Int(slot)].size = stored
        place(slot, in: kind)
        used += size
        count += 1
        guard sketch.isTooSmall(for: count), rules == .worth else { return }
        sketch.grow(for: count) { keep in
            for slot in 0..<entries.count where entries[slot].segment != nil { keep(entries[slot].hash) }
        }
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
        entries[Int(slot)].segment = nil
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
        let hash = entries[Int(slot)].hash
        remove(slot)
        guard let stored = UInt32(exactly: max(0, size)), size <= capacity, makeRoom(size, in: .main, &victims) else {
            return victims.append(slot)
        }
        entries[Int(slot)].hash = hash
        entries[Int(slot)].size = stored
        place(slot, in: .main)
        used += max(0, size)
        count += 1
    }

    mutating func setCapacity(_ capacity: Int, victims: inout [Slot]) {
        self.capacity = max(0, capacity)
        // Segments that are there keep their size, new ones have the new one.
        if !fixedShape { shape = SegmentShape(capacity: self.capacity) }
        while count > 0, used > self.capacity || occupied > room(), reclaim(incoming: 0, &victims) {}
    }

    // MARK: Rules

    private mutating func noteRequest(isHit: Bool, _ hash: UInt32) {
        requests &+= 1
        if isHit { hits &+= 1 }
        if rules == .worth { sketch.add(hash) }
    }

    private mutating func log(ofNew hash: UInt32, size: Int) -> LogKind {
        guard rules == .worth else { return ghosts.takes(hash, entries: count) ? .main : .small }
        let worth = EntryWorth.of(frequency: sketch.estimate(hash), wasUsed: false, bytes: cost(UInt32(clamping: size)))
        return ReclaimJudge.log(ofNew: worth, promotion: sample.promotion)
    }

    private var judge: ReclaimJudge {
        ReclaimJudge(sample: sample, share: rules == .fifo ? 0.1 : share.value, turn: turn)
    }

    /// The bytes that entries may occupy.
    private func room() -> Int {
        let isOpen = open.reduce(0) { $0 + ($1 == nil ? 0 : 1) }
        let openBytes = open.reduce(0) { sum, slot in
            sum + max(0, shape.openSize - (slot.flatMap { segments[Int($0)]?.tail } ?? shape.openSize))
        }
        return isOpen == 0 ? capacity - shape.reserve : capacity - shape.reserve - openBytes
    }

    private mutating func makeRoom(_ size: Int, in kind: LogKind, _ victims: inout [Slot]) -> Bool {
        let bytes = max(1, size)
        while !fits(bytes, in: kind) {
            guard reclaim(incoming: kind == .small ? bytes : 0, &victims) else { return fits(bytes, in: kind) }
        }
        return true
    }

    private func fits(_ bytes: Int, in kind: LogKind) -> Bool {
        // What an open segment has left is counted already.
        if !isBlob(bytes), let slot = open[Int(kind.rawValue)], let segment = segments[Int(slot)],
            segment.tail + bytes <= shape.openSize, occupied <= room()
        {
            return true
        }
        return occupied + (isBlob(bytes) ? bytes : max(bytes, shape.openSize)) <= room()
    }

    /// Reclaims one segment; false when there is none.
    private mutating func reclaim(incoming: Int, _ victims: inout [Slot]) -> Bool {
        if rules == .worth {
            share.update(requests: requests, hits: hits, entries: count)
            if changes >= count / 64 {
                sample = drawSample()
                changes = 0
            }
        }
        if sealed[0].isEmpty, sealed[1].isEmpty {
            guard let kind = [LogKind.small, .main].first(where: { open[Int($0.rawValue)] != nil }) else {
                return false
            }
            seal(kind)
        }
        let incoming = rules == .worth ? incoming : 0
        let small = weight(.small)
        let chosen = judge.log(
            small: small + incoming,
            total: rules == .worth ? capacity : small + weight(.main),
            canTakeSmall: !sealed[0].isEmpty,
            canTakeMain: !sealed[1].isEmpty
        )
        guard let kind = chosen else { return false }
        var position = 0
        if kind == .main, rules == .worth {
            position = judge.victim(
                ofMain: sealed[1].map { ReclaimJudge.Segment(slot: $0, weight: segments[Int($0)]?.weight ?? 0) }
            )
            turn += 1
        }
        let slot = sealed[Int(kind.rawValue)].remove(at: position)
        guard let segment = segments[Int(slot)] else { return true }
        var live: [Slot] = []
        for item in segment.entries where entries[Int(item)].segment == slot && !entries[Int(item)].isMarked {
            entries[Int(item)].isMarked = true
            live.append(item)
        }
        for item in live { entries[Int(item)].isMarked = false }
        let carries = rules == .worth ? judged(live, segment) : judgedByUse(live, segment)
        for (item, isCarried) in zip(live, carries) where !isCarried {
            if rules == .fifo, kind == .small { ghosts.note(entries[Int(item)].hash, entries: count) }
            remove(item)
            victims.append(item)
            changes += 1
        }
        occupied -= segments[Int(slot)]?.weight ?? 0
        segments[Int(slot)] = nil
        free.append(slot)
        sample.forget(slot)
        for (item, isCarried) in zip(live, carries) where isCarried {
            let bytes = cost(entries[Int(item)].size)
            if !isBlob(bytes) { bytesMoved += bytes }
            let uses = entries[Int(item)].uses
            entries[Int(item)].uses = rules == .fifo && kind == .main ? uses - 1 : 0
            place(item, in: .main)
        }
        return true
    }

    private func judged(_ live: [Slot], _ segment: ModelSegment) -> [Bool] {
        let candidates = live.map { item in
            ReclaimJudge.Candidate(
                worth: worth(entries[Int(item)]),
                bytes: cost(entries[Int(item)].size),
                wasUsed: entries[Int(item)].uses > 0
            )
        }
        return judge.carries(candidates, of: segment.kind, weight: segment.weight)
    }

    private func judgedByUse(_ live: [Slot], _ segment: ModelSegment) -> [Bool] {
        var carried = 0
        return live.map { item in
            let bytes = cost(entries[Int(item)].size)
            guard entries[Int(item)].uses > 0, carried + bytes <= segment.weight / 4 * 3 else { return false }
            carried += bytes
            return true
        }
    }

    // MARK: Places

    /// The bytes that an entry takes: none takes nothing.
    func cost(_ size: UInt32) -> Int { Int(max(1, size)) }

    func isBlob(_ bytes: Int) -> Bool { bytes > shape.inlineLimit }

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
