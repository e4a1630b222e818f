// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// The bounds that whoever opens a store may set, in bytes; nil: the default.
struct SpaceLimits: Sendable, Hashable {
    var entry: Int?
    var uncommitted: Int?
    var held: Int?
}

/// How the capacity of a store is shared out; see "Room" in `docs/disk-format.md`.
struct SpaceBudget: Sendable, Hashable {
    /// Bytes of the files and directories beside segments and blobs: FORMAT with a list of these many rows, lock, directories.
    static func overhead(rows: Int) -> Int {
        let pages = max(1, (max(0, rows) * SegmentRow.size + Geometry.page - 1) / Geometry.page)
        return (7 + pages) * Geometry.page
    }

    /// How many segments the list has room for.
    static func rows(geometry: Geometry) -> Int { 2 * geometry.capacity / geometry.segmentSize }

    /// What files and directories beside segments and blobs take.
    let overhead: Int
    let capacity: Int
    let segmentSize: Int
    /// What pinned entries may take.
    let pinned: Int
    /// What bodies may take on the disk before their entries are committed.
    let uncommitted: Int
    /// What bodies may take that are still read though their entries are gone, before entries make room for others no more.
    let held: Int
    /// What reclaiming loses at most to rounding: a page and a header and footer for each segment.
    let slack: Int

    /// What one entry may take, keys and description counted.
    let entry: Int

    /// The shares of a capacity.
    init(geometry: Geometry, limits: SpaceLimits = SpaceLimits()) {
        capacity = geometry.capacity
        segmentSize = geometry.segmentSize
        overhead = Self.overhead(rows: Self.rows(geometry: geometry))
        // Beside the reclaimer's three segments, two are being written by callers.
        let usable = max(0, geometry.capacity - overhead - 5 * geometry.segmentSize)
        pinned = min(geometry.capacity / 2, usable / 2)
        let share = min(geometry.capacity / 4, usable / 8 * 3)
        entry = max(0, limits.entry ?? share)
        uncommitted = max(limits.uncommitted ?? share, entry)
        held = max(0, limits.held ?? min(geometry.capacity / 8, usable / 8))
        slack = min(geometry.segmentSize, geometry.capacity / geometry.segmentSize * (Geometry.page + 128))
    }

    private init(capacity: Int) {
        (self.capacity, segmentSize, pinned, uncommitted, held, slack, entry) = (capacity, 0, 0, 0, 0, 0, 0)
        overhead = 0
    }

    /// For a reader, which writes nothing.
    static let none = SpaceBudget(capacity: .max)

    /// The bytes that only the reclaimer may use, those left in its open segment included.
    var reserve: Int { 2 * segmentSize + slack }
}

/// The bytes on the disk against the capacity: nothing is put there that was not granted before.
///
/// What is removed while someone still reads it stays counted until its last descriptor is closed.
final class SpaceLedger: Sendable {
    /// Who asks for bytes.
    enum Party: Sendable {
        /// Puts, bodies and removals: they leave the reclaimer its reserve.
        case caller
        /// The reclaimer, which gives back more than it takes.
        case reclaimer
    }

    private struct State {
        var used: Int
        /// The most bytes that may be used: the capacity, but for an opening that found more.
        var ceiling: Int
        /// What the reclaimer's open segment can still take.
        var roomAhead = 0
        /// Of ``used``: blobs without a committed entry.
        var uncommitted = 0
        /// Of ``used``: blobs that have lost their name and are still read.
        var held = 0
        /// Of ``used``: segments that have lost their name and are still read.
        var retired = 0
    }

    let budget: SpaceBudget
    private let state: Mutex<State>

    var capacity: Int { budget.capacity }

    /// A ledger that starts with what lies on the disk already.
    init(budget: SpaceBudget, used: Int) {
        self.budget = budget
        state = Mutex(State(used: used, ceiling: budget.capacity))
    }

    /// Bytes granted now.
    var used: Int { state.withLock { $0.used } }
    /// Bytes of bodies that are on the disk and not committed.
    var uncommitted: Int { state.withLock { $0.uncommitted } }
    /// Bytes of bodies that are read though their files have no name any more.
    var held: Int { state.withLock { $0.held } }
    /// Bytes of segments that a read is about to let go of.
    var retired: Int { state.withLock { $0.retired } }
    /// What is left for the reclaimer to take at once.
    var free: Int { state.withLock { $0.ceiling - $0.used } }
    /// What is free and what the reclaimer's open segment can take: the quantity of which the invariant speaks.
    var reserve: Int { state.withLock { $0.ceiling - $0.used + $0.roomAhead + $0.retired } }

    /// What has to go until the capacity holds and the reclaimer has its reserve; at most 0 when both is so.
    var excess: Int {
        state.withLock { $0.used + max(0, budget.reserve - $0.roomAhead) - budget.capacity }
    }

    /// Grants bytes, unless the party has no right to so many.
    func grant(_ count: Int, for party: Party) -> Bool {
        state.withLock { state in
            guard fits(count, for: party, state) else { return false }
            state.used += max(0, count)
            return true
        }
    }

    /// Whether so many bytes would be granted.
    func hasRoom(_ count: Int, for party: Party) -> Bool {
        state.withLock { fits(count, for: party, $0) }
    }

    private func fits(_ count: Int, for party: Party, _ state: State) -> Bool {
        let reserve = party == .caller ? max(0, budget.reserve - state.roomAhead) : 0
        let (sum, overflow) = state.used.addingReportingOverflow(max(0, count))
        return !overflow && sum <= state.ceiling - reserve
    }

    /// Grants bytes for a body that is being written.
    func grantBody(_ count: Int) -> Bool {
        state.withLock { state in
            guard fits(count, for: .caller, state) else { return false }
            state.used += max(0, count)
            state.uncommitted += max(0, count)
            return true
        }
    }

    /// Notes that a body has its entry, or is given up: it is no longer one that is being written.
    func endBody(_ count: Int) {
        state.withLock { $0.uncommitted -= max(0, count) }
    }

    /// Notes that a blob lost its name while it is read (above zero), or that its last reader has closed it.
    func hold(_ count: Int) {
        state.withLock { $0.held += count }
    }

    /// Notes that a segment lost its name (above zero), or that its file is closed.
    func retire(_ count: Int) {
        state.withLock { $0.retired += count }
    }

    /// Notes what the reclaimer's open segment can still take.
    func setRoomAhead(_ count: Int) {
        state.withLock { $0.roomAhead = max(0, count) }
    }

    /// Lets more be used than the capacity, or ends that: what an opening finds has to be carried before it can be cut down.
    func setCeiling(_ count: Int) {
        state.withLock { $0.ceiling = max(budget.capacity, count) }
    }

    /// Why no reclaim can make room for so many bytes; nil: one can.
    ///
    /// - Parameters:
    ///   - pinned: what pinned entries take.
    ///   - read: what open readers hold of entries that are there.
    func refusal(wanted: Int, pinned: Int, read: Int) -> StoreError? {
        let state = state.withLock { $0 }
        // Entries that are read can go as long as what is held stays within its bound.
        let kept = max(0, read - max(0, budget.held - state.held))
        let fixed = budget.overhead + 5 * budget.segmentSize
        let left = state.ceiling - fixed - pinned - state.uncommitted - state.held - kept
        if left >= wanted { return nil }
        let message = """
            \(pinned) bytes are pinned, \(state.uncommitted) of bodies being written and \(state.held + kept) of bodies being \
            read, which leaves no room in \(capacity); try again when some of them have ended, or raise the capacity.
            """
        return StoreError(.noSpace, message)
    }

    /// Counts bytes that are there, granted or not.
    func count(_ count: Int) {
        state.withLock { $0.used = $0.used.addingSaturated(max(0, count)) }
    }

    /// Gives bytes back.
    func release(_ count: Int) {
        state.withLock { $0.used = $0.used.addingSaturated(-max(0, count)) }
    }

    /// Rounded up to whole blocks of 4 KiB, as file systems give them out.
    static func blocks(_ count: Int) -> Int {
        count > Int.max - 4_095 ? Int.max / 4_096 * 4_096 : (count + 4_095) / 4_096 * 4_096
    }
}

extension Int {
    /// The sum, or the number nearest to it. Files may claim any length, so that their sum has no bound.
    func addingSaturated(_ other: Int) -> Int {
        let (sum, overflow) = addingReportingOverflow(other)
        return overflow ? (other < 0 ? .min : .max) : sum
    }
}

/// Which entries are pinned, by identity, and what they weigh; few, since each is a person's wish.
final class PinBook: Sendable {
    private struct State {
        var weights: [EntryIdentity: Int]
        var sum: Int
    }

    private let capacity: Int
    private let state: Mutex<State>

    init(capacity: Int) {
        self.capacity = capacity
        state = Mutex(State(weights: [:], sum: 0))
    }

    /// What all pinned entries weigh.
    var sum: Int { state.withLock { $0.sum } }

    /// Pins an entry of this weight, or gives it this weight; false when there is no room for it.
    func pin(_ identity: EntryIdentity, weight: Int) -> Bool {
        state.withLock { state in
            let others = state.sum - (state.weights[identity] ?? 0)
            guard weight <= capacity - others else { return false }
            state.weights[identity] = weight
            state.sum = others + weight
            return true
        }
    }

    /// Releases an entry.
    func release(_ identity: EntryIdentity) {
        state.withLock { state in
            state.sum -= state.weights.removeValue(forKey: identity) ?? 0
        }
    }

    /// Releases every entry.
    func releaseAll() {
        state.withLock { $0 = State(weights: [:], sum: 0) }
    }
}
