// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// Hands out order numbers and keeps the marks of purges, both under one lock, so that none slips past the other.
final class OrderBook: Sendable {
    private struct State {
        var last: UInt64
        var marks: PurgeMarks
    }

    /// What a purge marks as gone.
    enum Mark: Sendable, Hashable {
        case tag(UInt64)
        case prefix([UInt8])
    }

    private let state: Mutex<State>
    private let hashing: KeyHashing
    /// The last order handed out, for those who need no lock to know it.
    private let lastOrder: Atomic<UInt64>
    /// The order of the newest mark: what is newer needs no look at the marks.
    private let newestMark: Atomic<UInt64>

    /// Goes on after `last` with the marks that are left.
    init(last: UInt64, marks: PurgeMarks, hashing: KeyHashing) {
        newestMark = Atomic(marks.newestOrder)
        lastOrder = Atomic(last)
        self.hashing = hashing
        state = Mutex(State(last: last, marks: marks))
    }

    /// The last order handed out.
    var last: UInt64 { lastOrder.load(ordering: .acquiring) }

    /// The order of the newest mark, 0 without one.
    var newestMarkOrder: UInt64 { newestMark.load(ordering: .acquiring) }

    /// The next order.
    func next() -> UInt64 {
        state.withLock { state in
            state.last += 1
            lastOrder.store(state.last, ordering: .releasing)
            return state.last
        }
    }

    /// The next order for an entry that began to be written after `start`; nil when a mark since then takes it.
    func next(since start: UInt64, key: StoreKey, tags: Set<String>) -> UInt64? {
        state.withLock { state in
            if state.marks.takes(order: start, tags: tags, key: key, hashing: hashing) { return nil }
            state.last += 1
            lastOrder.store(state.last, ordering: .releasing)
            return state.last
        }
    }

    /// Whether a mark takes an entry of this order.
    func takes(order: UInt64, key: StoreKey, tags: Set<String>) -> Bool {
        guard order < newestMark.load(ordering: .acquiring) else { return false }
        return state.withLock { $0.marks.takes(order: order, tags: tags, key: key, hashing: hashing) }
    }

    /// Adds a mark under a new order.
    ///
    /// - Returns: the order; nil when there are too many marks.
    func mark(_ what: Mark, horizon: () -> UInt64) -> (order: UInt64, horizon: UInt64)? {
        state.withLock { state in
            if state.marks.isFull { return nil }
            state.last += 1
            lastOrder.store(state.last, ordering: .releasing)
            let reach = horizon()
            switch what {
            case .tag(let hash): state.marks.add(tag: hash, order: state.last, horizon: reach)
            case .prefix(let bytes): state.marks.add(prefix: bytes, order: state.last, horizon: reach)
            }
            newestMark.store(state.marks.newestOrder, ordering: .releasing)
            return (state.last, reach)
        }
    }

    /// Whether there are so many marks that what they take should be removed one by one.
    var isCrowded: Bool { state.withLock { $0.marks.isCrowded } }

    /// Changes the marks: drops those that nothing on the disk needs any more.
    func withMarks<Value>(_ body: (inout PurgeMarks) -> Value) -> Value {
        state.withLock { state in
            let value = body(&state.marks)
            newestMark.store(state.marks.newestOrder, ordering: .releasing)
            return value
        }
    }
}
