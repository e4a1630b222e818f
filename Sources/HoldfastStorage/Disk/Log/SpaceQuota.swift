// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// How the capacity of a store is divided; see "Room" in `docs/disk-format.md`.
struct SpaceBudget: Sendable, Hashable {
    /// The bytes of everything except segments and blobs: FORMAT with a list of this many rows, lock, directories.
    static func overhead(rows: Int) -> Int {
        let pages = max(1, (max(0, rows) * SegmentRow.size + Geometry.page - 1) / Geometry.page)
        return (7 + pages) * Geometry.page
    }

    /// How many segments the list has room for.
    static func rows(geometry: Geometry) -> Int { 2 * geometry.capacity / geometry.segmentSize }

    /// The bytes of files and directories other than segments and blobs.
    let overhead: Int
    let capacity: Int
    let segmentSize: Int
    /// The limit for pinned entries.
    let pinned: Int
    /// The limit for bodies on the disk before their entries are committed.
    let uncommitted: Int
    /// The limit for bodies that are still read although their entries are gone; beyond it, entries being read are not evicted to
    /// make room.
    let held: Int
    /// The most that reclaiming loses to rounding: a page, a header and a footer for each segment.
    let slack: Int

    /// The limit for one entry, including keys and description.
    let entry: Int

    /// The shares of a capacity; without an `entrySize`, that of the largest entry follows from it.
    init(geometry: Geometry, entrySize: Int? = nil, options: StoreOptions = StoreOptions()) {
        capacity = geometry.capacity
        segmentSize = geometry.segmentSize
        overhead = Self.overhead(rows: Self.rows(geometry: geometry))
        // In addition to the reclaimer's three segments, callers write two.
        let usable = max(0, geometry.capacity - overhead - 5 * geometry.segmentSize)
        pinned = min(geometry.capacity / 2, usable / 2)
        let share = min(geometry.capacity / 4, usable / 8 * 3)
        // What fits into an empty store, with the trailers of its chunks; a longer body would evict everything and fail.
        entry = max(0, min(entrySize ?? share, usable - usable / 2_048 - 4 * Geometry.page))
        uncommitted = max(options.maximumUncommittedBytes ?? share, entry)
        held = max(0, options.maximumHeldBytes ?? min(geometry.capacity / 8, usable / 8))
        slack = min(geometry.segmentSize, geometry.capacity / geometry.segmentSize * (Geometry.page + 128))
    }

    /// For a reader, which writes nothing.
    static let none = SpaceBudget(geometry: Geometry(capacity: .max))

    /// What tombstones and marks may take of ``reserve`` if callers have no room.
    var lent: Int { segmentSize / 16 }

    /// What pending tombstones and marks may take of ``reserve`` when a reclaim begins.
    var pending: Int { segmentSize / 8 }

    /// The bytes that only the reclaimer may use, including the rest of its open segment.
    var reserve: Int { 2 * segmentSize + min(segmentSize, slack + lent + pending) }
}

/// Counts the bytes on the disk against the capacity: nothing is written there unless it was granted first.
///
/// A removed file that someone still reads stays counted until its last descriptor is closed.
final class SpaceQuota: Sendable {
    /// Who asks for bytes.
    enum Requester: Sendable {
        /// Puts, bodies and removals: they leave the reclaimer its reserve.
        case caller
        /// A body that is being written; otherwise like ``caller``.
        case body
        /// The reclaimer, which releases more than it takes.
        case reclaimer
    }

    private struct State {
        var used: Int
        /// The most bytes that may be used: the capacity, unless opening found more.
        var ceiling: Int
        /// The room left in the reclaimer's open segment.
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

    /// A quota that starts with the bytes already on the disk.
    init(budget: SpaceBudget, used: Int) {
        self.budget = budget
        state = Mutex(State(used: used, ceiling: budget.capacity))
    }

    /// The bytes granted now.
    var used: Int { state.withLock { $0.used } }
    /// The bytes of bodies that are on the disk and not committed.
    var uncommitted: Int { state.withLock { $0.uncommitted } }
    /// The bytes of bodies that are read although their files have no name any more.
    var held: Int { state.withLock { $0.held } }
    /// The bytes of segments that a reader will release soon.
    var retired: Int { state.withLock { $0.retired } }
    /// The bytes that the reclaimer can take at once.
    var free: Int { state.withLock { $0.ceiling - $0.used } }
    /// The free bytes plus the room in the reclaimer's open segment: the quantity in the invariant.
    var reserve: Int { state.withLock { $0.ceiling - $0.used + $0.roomAhead + $0.retired } }

    /// Whether a tombstone or mark may have this many bytes of the reclaimer's reserve.
    func lends(_ count: Int) -> Bool { reserve - count >= budget.reserve - budget.lent }

    /// The bytes to remove until the capacity is kept and the reclaimer has its reserve; at most 0 if both is true.
    var excess: Int {
        state.withLock { $0.used.addingSaturated(max(0, budget.reserve - $0.roomAhead) - budget.capacity) }
    }

    /// Grants bytes, unless the requester may not have that many.
    func grant(_ count: Int, for requester: Requester) -> Bool {
        state.withLock { state in
            guard fits(count, for: requester, state: state) else { return false }
            state.used += max(0, count)
            if requester == .body { state.uncommitted += max(0, count) }
            return true
        }
    }

    /// Whether this many bytes would be granted.
    func hasRoom(_ count: Int, for requester: Requester) -> Bool {
        state.withLock { fits(count, for: requester, state: $0) }
    }

    private func fits(_ count: Int, for requester: Requester, state: State) -> Bool {
        let reserve = requester != .reclaimer ? max(0, budget.reserve - state.roomAhead) : 0
        let (sum, overflow) = state.used.addingReportingOverflow(max(0, count))
        return !overflow && sum <= state.ceiling - reserve
    }

    /// Records that a body has its entry, or is given up, so that it is no longer being written.
    func endBody(_ count: Int) {
        state.withLock { $0.uncommitted -= max(0, count) }
    }

    /// Records that a blob lost its name while it is read (above zero), or that its last reader has closed it.
    func hold(_ count: Int) {
        state.withLock { $0.held += count }
    }

    /// Records that a segment lost its name (above zero), or that its file is closed.
    func retire(_ count: Int) {
        state.withLock { $0.retired += count }
    }

    /// Records the room left in the reclaimer's open segment.
    func setRoomAhead(_ count: Int) {
        state.withLock { $0.roomAhead = max(0, count) }
    }

    /// Allows more than the capacity to be used, or ends that: what opening finds must be carried before it can be reduced.
    func setCeiling(_ count: Int) {
        state.withLock { $0.ceiling = max(budget.capacity, count) }
    }

    /// Why reclaiming cannot make room for this many bytes; nil: it can.
    ///
    /// - Parameters:
    ///   - pinned: the bytes of pinned entries.
    ///   - read: the bytes of existing entries that open readers hold.
    func refusal(wanted: Int, pinned: Int, read: Int) -> StoreError? {
        let state = state.withLock { $0 }
        // Entries that are read can be removed as long as the bytes held stay within their limit.
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

    /// Counts bytes that exist, granted or not.
    func count(_ count: Int) {
        state.withLock { $0.used = $0.used.addingSaturated(max(0, count)) }
    }

    /// Releases bytes.
    func release(_ count: Int) {
        state.withLock { $0.used = $0.used.addingSaturated(-max(0, count)) }
    }

    /// Rounded up to whole blocks of 4 KiB, the unit of file systems.
    static func blocks(_ count: Int) -> Int {
        count > Int.max - 4_095 ? Int.max / 4_096 * 4_096 : (count + 4_095) / 4_096 * 4_096
    }
}

extension Int {
    /// The sum, or the nearest number to it. Files may claim any length, so their sum has no limit.
    func addingSaturated(_ other: Int) -> Int {
        let (sum, overflow) = addingReportingOverflow(other)
        return overflow ? (other < 0 ? .min : .max) : sum
    }
}

/// Which entries are pinned, by identity, and their weights; there are few, since each is a person's wish.
///
/// It changes together with the rows, under the lock of their shard, so that it never differs from them.
final class PinRegistry: Sendable {
    private struct State {
        /// By shard.
        var weights = [[EntryIdentity: Int]](repeating: [:], count: ShardedIndex.count)
        var sum = 0

        /// The weight of an entry; nil if it is not pinned.
        subscript(identity: EntryIdentity) -> Int? {
            get { weights[ShardedIndex.number(of: identity.primary)][identity] }
            set {
                sum += (newValue ?? 0) - (self[identity] ?? 0)
                weights[ShardedIndex.number(of: identity.primary)][identity] = newValue
            }
        }
    }

    private let capacity: Int
    private let state = Mutex(State())

    init(capacity: Int) { self.capacity = capacity }

    /// All pinned entries.
    var identities: [EntryIdentity] { state.withLock { $0.weights.flatMap(\.keys) } }
    /// The total weight of all pinned entries.
    var sum: Int { state.withLock { $0.sum } }

    /// Whether there is room for an entry of this weight, which replaces the one that it has.
    func hasRoom(for identity: EntryIdentity, weight: Int) -> Bool {
        state.withLock { weight <= capacity - $0.sum + ($0[identity] ?? 0) }
    }

    /// Pins an entry of this weight, or changes its weight; false if there is no room for it.
    func pin(_ identity: EntryIdentity, weight: Int) -> Bool {
        state.withLock { state in
            guard weight <= capacity - state.sum + (state[identity] ?? 0) else { return false }
            state[identity] = weight
            return true
        }
    }

    /// Unpins an entry.
    func release(_ identity: EntryIdentity) { state.withLock { $0[identity] = nil } }

    /// Unpins every entry of a shard.
    func releaseAll(ofShard number: Int) {
        state.withLock { state in
            state.sum -= state.weights[number].values.reduce(0, +)
            state.weights[number] = [:]
        }
    }
}
