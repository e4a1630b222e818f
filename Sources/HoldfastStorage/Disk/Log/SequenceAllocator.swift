// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// Issues order numbers and keeps the marks of purges, both under one lock, so that none is missed.
final class SequenceAllocator: Sendable {
    private struct State {
        var last: UInt64
        var marks: PurgeMarks
    }

    private let state: Mutex<State>
    private let hashing: KeyHashing
    /// The last order issued, for reading without a lock.
    private let lastOrder: Atomic<UInt64>
    /// The order of the newest mark: anything newer need not be checked against the marks.
    private let newestMark: Atomic<UInt64>

    /// Continues after `last` with the remaining marks.
    init(last: UInt64, marks: PurgeMarks, hashing: KeyHashing) {
        newestMark = Atomic(marks.newestOrder)
        lastOrder = Atomic(last)
        self.hashing = hashing
        state = Mutex(State(last: last, marks: marks))
    }

    /// The last order issued.
    var last: UInt64 { lastOrder.load(ordering: .acquiring) }

    /// The order of the newest mark, 0 without one.
    var newestMarkOrder: UInt64 { newestMark.load(ordering: .acquiring) }

    /// The next order.
    func next() -> UInt64 { state.withLock { advance(&$0) } }

    private func advance(_ state: inout State) -> UInt64 {
        state.last += 1
        lastOrder.store(state.last, ordering: .releasing)
        return state.last
    }

    /// The next order for an entry that began to be written after `start`; nil if a mark since then kills it, or may have killed it
    /// but has been dropped.
    func next(since start: UInt64, key: StoreKey, tags: Set<String>) -> UInt64? {
        state.withLock { state in
            if start < state.marks.droppedOrder { return nil }
            if state.marks.takes(order: start, tags: tags, key: key, hashing: hashing) { return nil }
            return advance(&state)
        }
    }

    /// Whether a mark kills an entry of this order.
    func takes(order: UInt64, key: StoreKey, tags: Set<String>) -> Bool {
        guard order < newestMark.load(ordering: .acquiring) else { return false }
        return state.withLock { $0.marks.takes(order: order, tags: tags, key: key, hashing: hashing) }
    }

    /// Adds a mark under a new order.
    ///
    /// - Returns: the order; nil if there are too many marks.
    func mark(_ what: PurgeMarks.Mark, horizon: () -> UInt64) -> (order: UInt64, horizon: UInt64)? {
        state.withLock { state in
            if state.marks.isFull { return nil }
            let order = advance(&state)
            let reach = horizon()
            state.marks.add(what, order: order, horizon: reach)
            newestMark.store(state.marks.newestOrder, ordering: .releasing)
            return (order, reach)
        }
    }

    /// Whether there are so many marks that their entries should be removed one by one.
    var isCrowded: Bool { state.withLock { $0.marks.isCrowded } }

    /// Changes the marks, to drop those that nothing on the disk needs any more.
    func withMarks<Value>(_ body: (inout PurgeMarks) -> Value) -> Value {
        state.withLock { state in
            let value = body(&state.marks)
            newestMark.store(state.marks.newestOrder, ordering: .releasing)
            return value
        }
    }
}

/// The purges by tag and by prefix that entries on the disk still have to be checked against.
///
/// A mark kills every entry of a lower order that has its tag, or whose primary key begins with its prefix; an entry is checked
/// when it is looked up or carried forward. Add a mark in the step that takes its order; copies and freshened records check the
/// marks after their place is reserved.
///
/// Bounded: a caller that finds it full waits until the entries that the marks kill have been removed one by one.
struct PurgeMarks: Sendable {
    /// What a purge marks as gone: entries with a tag, by its hash, or those whose key begins with a prefix.
    enum Mark: Sendable, Hashable {
        case tag(UInt64)
        case prefix([UInt8])
    }

    /// The most marks kept by purges; recovery may restore more.
    static let bound = 8_192
    /// From this many marks on, the entries they kill are removed in the background.
    static let crowd = 1_024
    /// The longest prefix that is stored as a mark.
    static let longestPrefix = 4_096
    /// The most bytes of prefixes stored.
    static let prefixBound = 256 << 10

    private struct Reach: Sendable {
        var order: UInt64
        var horizon: UInt64
    }

    private var tags: [UInt64: Reach] = [:]
    private var prefixes: [[UInt8]: Reach] = [:]
    private var prefixBytes = 0

    /// The highest order of all marks; entries of this order or a higher one need not be checked. 0 without marks.
    private(set) var newestOrder: UInt64 = 0
    /// The highest order of the marks that were dropped: they are no longer needed on the disk, but what began to be written before
    /// them is not there yet.
    private(set) var droppedOrder: UInt64 = 0

    /// How many marks there are.
    var count: Int { tags.count + prefixes.count }

    /// Whether there is no room for another purge by a new tag or prefix.
    var isFull: Bool { count >= Self.bound || prefixBytes >= Self.prefixBound }

    /// Whether there are many.
    var isCrowded: Bool { count >= Self.crowd || prefixBytes >= Self.prefixBound / 2 }

    /// Adds a mark; of the same tag or prefix, the newer one covers both.
    mutating func add(_ mark: Mark, order: UInt64, horizon: UInt64) {
        switch mark {
        case .tag(let hash): Self.extend(&tags[hash], order: order, horizon: horizon)
        case .prefix(let bytes):
            if prefixes[bytes] == nil { prefixBytes += bytes.count }
            Self.extend(&prefixes[bytes], order: order, horizon: horizon)
        }
        newestOrder = max(newestOrder, order)
    }

    /// Whether a mark kills the entry of this order.
    ///
    /// Cost: one comparison if no mark is newer than the entry; otherwise a hash of each tag and a comparison with each prefix.
    func takes(order: UInt64, tags bearing: Set<String>, key: StoreKey, hashing: KeyHashing) -> Bool {
        guard order < newestOrder else { return false }
        if !tags.isEmpty {
            for tag in bearing {
                if let reach = tags[hashing.tag(tag)], order < reach.order { return true }
            }
        }
        return prefixes.contains { prefix, reach in order < reach.order && key.hasPrefix(prefix) }
    }

    /// Drops the marks that no segment needs any more; `lowest` is the lowest number of the segments on the disk.
    mutating func prune(lowest: UInt64) { keep { $0.horizon >= lowest } }

    /// Drops the marks up to an order: the entries they killed were removed one by one.
    mutating func forget(upTo order: UInt64) { keep { $0.order > order } }

    private mutating func keep(_ isKept: (Reach) -> Bool) {
        for reaches in [Array(tags.values), Array(prefixes.values)] {
            droppedOrder = reaches.reduce(droppedOrder) { isKept($1) ? $0 : max($0, $1.order) }
        }
        tags = tags.filter { isKept($0.value) }
        prefixes = prefixes.filter { isKept($0.value) }
        prefixBytes = prefixes.keys.reduce(0) { $0 + $1.count }
        newestOrder = max(tags.values.map(\.order).max() ?? 0, prefixes.values.map(\.order).max() ?? 0)
    }

    private static func extend(_ reach: inout Reach?, order: UInt64, horizon: UInt64) {
        guard let old = reach else {
            reach = Reach(order: order, horizon: horizon)
            return
        }
        reach = Reach(order: max(old.order, order), horizon: max(old.horizon, horizon))
    }
}
