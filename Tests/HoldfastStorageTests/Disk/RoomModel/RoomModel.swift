// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The accounting of a disk store of six segments, as `docs/disk-format.md` states it under "Room": which bytes are granted to whom, and
/// what a reclaim writes. A record takes one unit, whatever it is, a segment three.
struct RoomModel: Hashable {
    /// The rules that are tried.
    enum Rules: Hashable {
        /// The reclaimer has a segment of its own and a reserve of two less what is left in that.
        case reserve
        /// Version 0.1.0: one segment is kept back, and copies go where callers write, too.
        case oneKeptBack
    }

    enum Kind: UInt8, Hashable { case dead, cold, hot, pinned, note }

    struct Record: Hashable {
        var kind: Kind
        /// Whether its eviction leaves a tombstone.
        var shadows = false
        /// Of a note: it is wanted while a segment up to this number is left.
        var horizon: UInt8 = 0

        var isLive: Bool { kind == .cold || kind == .hot || kind == .pinned }
    }

    struct Segment: Hashable {
        var number: UInt8
        var records: [Record] = []
        /// Whether a read holds its file open.
        var isRead = false
        var isStuck = false
        /// Whether it was cut to what it holds.
        var isCut = false

        var size: Int { isCut ? records.count : RoomModel.segmentSize }
        var room: Int { RoomModel.segmentSize - records.count }
    }

    struct Reclaim: Hashable {
        var victim: Segment
        var cursor = 0
        var drops = false
    }

    static let segmentSize = 3
    static let capacity = 6 * segmentSize
    /// How many segments younger than an open one may be reclaimed before that is closed.
    static let maximumAge: UInt8 = 2
    /// The units that pins, bodies being written and bodies held may take, each.
    static let share = 1

    let rules: Rules
    var sealed: [Segment] = []
    /// The open segments: new entries; tombstones of callers; copies.
    var small: Segment?
    var main: Segment?
    var carried: Segment?
    var reclaim: Reclaim?
    /// Units of segments that are unlinked and still read.
    var retired = 0
    var uncommitted = 0
    var held = 0
    var next: UInt8 = 1

    init(_ rules: Rules) { self.rules = rules }

    // MARK: The accounting

    private var all: [Segment] { sealed + [small, main, carried, reclaim?.victim].compactMap { $0 } }

    var used: Int {
        sealed.reduce(retired + uncommitted + held) { $0 + $1.size } + (reclaim?.victim.size ?? 0)
            + Self.segmentSize * [small, main, carried].count { $0 != nil }
    }

    var free: Int { Self.capacity - used }

    /// What the invariant speaks of; the units that reads are about to give back count.
    var reserve: Int { free + retired + (carried?.room ?? 0) }

    private func grants(_ units: Int, toCaller: Bool) -> Bool {
        guard toCaller else { return units <= free }
        switch rules {
        case .oneKeptBack: return units + Self.segmentSize <= free
        case .reserve: return units + 2 * Self.segmentSize - (carried?.room ?? 0) <= free
        }
    }

    private var pins: Int { all.reduce(0) { $0 + $1.records.count { $0.kind == .pinned } } }

    // MARK: Callers

    /// Steps of callers, by name; each leaves the state as it was where it cannot be done.
    static let steps = [
        "put", "remove oldest", "remove newest", "hit", "pin", "read", "end of reads", "body", "hold", "release",
        "reclaim",
    ]

    mutating func step(_ name: String) {
        switch name {
        case "put": _ = put()
        case "remove oldest": remove(newest: false)
        case "remove newest": remove(newest: true)
        case "hit":
            change {
                $0.kind == .cold
            } to: {
                $0.kind = .hot
            }
        case "pin":
            if pins < Self.share {
                change {
                    $0.isLive
                } to: {
                    $0.kind = .pinned
                }
            }
        case "read": if !sealed.isEmpty { sealed[0].isRead = true }
        case "end of reads": endReads()
        case "body":
            if uncommitted < Self.share, grants(1, toCaller: true) { uncommitted += 1 }
        case "hold": if uncommitted > 0, held < Self.share { (uncommitted, held) = (uncommitted - 1, held + 1) }
        case "release": held = 0
        default: if reclaim != nil { stepReclaim() }
        }
    }

    mutating func endReads() {
        retired = 0
        for index in sealed.indices { sealed[index].isRead = false }
        reclaim?.victim.isRead = false
    }

    /// Puts an entry, or begins a reclaim where there is no room, which drops everything that may go if asked to; whether it was put.
    mutating func put(drops: Bool = false) -> Bool {
        if (small?.room ?? 0) == 0 {
            seal(\.small)
            guard grants(Self.segmentSize, toCaller: true) else {
                beginReclaim(drops: drops)
                return false
            }
            small = open()
        }
        // Until a victim is gone, what was evicted from it may be found again.
        let shadows = reclaim != nil || sealed.contains { $0.isStuck }
        small?.records.append(Record(kind: .cold, shadows: shadows))
        return true
    }

    private mutating func remove(newest: Bool) {
        guard let place = places.filter({ self[$0].isLive }).min(by: { newest ? $0 > $1 : $0 < $1 }) else { return }
        if (main?.room ?? 0) == 0 {
            seal(\.main)
            guard grants(Self.segmentSize, toCaller: true) else { return beginReclaim() }
            main = open()
        }
        main?.records.append(Record(kind: .note, horizon: next - 1))
        self[place].kind = .dead
    }

    private mutating func change(_ fits: (Record) -> Bool, to change: (inout Record) -> Void) {
        guard let place = places.filter({ fits(self[$0]) }).min() else { return }
        change(&self[place])
    }

    private struct Place: Comparable {
        let number: UInt8
        let index: Int

        static func < (left: Place, right: Place) -> Bool {
            (left.number, left.index) < (right.number, right.index)
        }
    }

    private var places: [Place] {
        all.flatMap { segment in segment.records.indices.map { Place(number: segment.number, index: $0) } }
    }

    private subscript(place: Place) -> Record {
        get { all.first { $0.number == place.number }?.records[place.index] ?? Record(kind: .dead) }
        set {
            if let index = sealed.firstIndex(where: { $0.number == place.number }) {
                sealed[index].records[place.index] = newValue
            }
            if small?.number == place.number { small?.records[place.index] = newValue }
            if main?.number == place.number { main?.records[place.index] = newValue }
            if carried?.number == place.number { carried?.records[place.index] = newValue }
            if reclaim?.victim.number == place.number { reclaim?.victim.records[place.index] = newValue }
        }
    }

    // MARK: The reclaimer

    private mutating func open() -> Segment {
        next += 1
        return Segment(number: next - 1)
    }

    private mutating func seal(_ path: WritableKeyPath<RoomModel, Segment?>) {
        guard var segment = self[keyPath: path] else { return }
        self[keyPath: path] = nil
        segment.isCut = segment.room > 0
        if !segment.records.isEmpty { sealed.append(segment) }
        sealed.sort { $0.number < $1.number }
    }

    mutating func beginReclaim(drops: Bool = false) {
        guard reclaim == nil else { return }
        // What a read is about to give back is waited for.
        if rules == .reserve, retired > 0, free < Self.segmentSize { return }
        // With nothing sealed what is open is all there is.
        for path in [\RoomModel.small, \.main, \.carried] where sealed.isEmpty { seal(path) }
        // An open segment that is older keeps every tombstone since then alive: it may be so for a while, unless entries are dropped.
        let victim = sealed.first { !$0.isStuck }?.number ?? .max
        let oldest = drops ? victim : victim - min(victim, Self.maximumAge)
        if rules == .reserve {
            for path in [\RoomModel.small, \.main, \.carried] where (self[keyPath: path]?.number ?? .max) < oldest {
                seal(path)
            }
        }
        guard let index = sealed.firstIndex(where: { !$0.isStuck }) ?? sealed.indices.first else { return }
        reclaim = Reclaim(victim: sealed.remove(at: index), drops: drops)
    }

    /// A place for a copy or a tombstone of the reclaimer's; false where there is none.
    private mutating func write(_ record: Record) -> Bool {
        let path: WritableKeyPath<RoomModel, Segment?> = rules == .reserve ? \.carried : \.main
        if (self[keyPath: path]?.room ?? 0) == 0 {
            guard grants(Self.segmentSize, toCaller: false) else { return false }
            seal(path)
            self[keyPath: path] = open()
        }
        self[keyPath: path]?.records.append(record)
        return true
    }

    mutating func stepReclaim() {
        guard let reclaim else { return }
        guard reclaim.cursor < reclaim.victim.records.count else {
            self.reclaim = nil
            if reclaim.victim.isRead { retired += reclaim.victim.size }
            return
        }
        let record = reclaim.victim.records[reclaim.cursor]
        var isDone = true
        switch record.kind {
        case .dead: break
        case .note:
            let lowest = all.filter { $0.number != reclaim.victim.number }.map(\.number).min() ?? .max
            if lowest <= record.horizon { isDone = write(record) }
        case .pinned: isDone = write(record)
        // All of it, if the rule says so: there is room whatever that carries.
        case .hot where !reclaim.drops && write(Record(kind: .cold)): break
        case .hot, .cold:
            if record.shadows { isDone = write(Record(kind: .note, horizon: next - 1)) }
        }
        if isDone {
            self.reclaim?.victim.records[reclaim.cursor].kind = .dead
            self.reclaim?.cursor += 1
        } else if var victim = self.reclaim?.victim {
            victim.isStuck = true
            self.reclaim = nil
            sealed.append(victim)
            sealed.sort { $0.number < $1.number }
        }
    }

    // MARK: Questions

    /// What is wrong with a state; nil: nothing.
    var complaint: String? {
        if used > Self.capacity { return "\(used) of \(Self.capacity) units are used" }
        if rules == .reserve, reclaim == nil, reserve < 2 * Self.segmentSize {
            return "the reserve is \(reserve) units"
        }
        if sealed.contains(where: \.isStuck), rules == .reserve { return "a reclaim did not end" }
        // Reads of segments end by themselves.
        var later = self
        later.endReads()
        for turn in 0..<64 {
            if later.put(drops: turn > 12 && rules == .reserve) { return nil }
            while later.reclaim != nil { later.stepReclaim() }
        }
        return "a put finds no room"
    }

    /// The state with its segments numbered anew, so that equal ones are equal.
    var canonical: RoomModel {
        var state = self
        let numbers = all.map(\.number).sorted()
        func rank(_ number: UInt8) -> UInt8 { UInt8(numbers.count { $0 <= number }) }
        func renumber(_ segment: inout Segment) {
            segment.number = rank(segment.number)
            for index in segment.records.indices {
                // A dead record is as good as any other.
                if segment.records[index].kind == .dead { segment.records[index] = Record(kind: .dead) }
                if segment.records[index].kind == .note {
                    segment.records[index].horizon = rank(segment.records[index].horizon)
                    if segment.records[index].horizon == 0 { segment.records[index] = Record(kind: .dead) }
                }
            }
        }
        for index in state.sealed.indices { renumber(&state.sealed[index]) }
        for path in [\RoomModel.small, \.main, \.carried] {
            if var segment = state[keyPath: path] {
                renumber(&segment)
                state[keyPath: path] = segment
            }
        }
        if var victim = state.reclaim?.victim {
            renumber(&victim)
            state.reclaim?.victim = victim
        }
        state.next = UInt8(numbers.count) + 1
        return state
    }
}
