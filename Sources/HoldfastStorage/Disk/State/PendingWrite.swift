// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// A record of an identity between the reservation of its place and its publication.
///
/// A put may overtake another put: orders decide. What replaces one certain record (a freshening, a change of a pin) must be
/// alone, since its order says nothing of the body that it keeps.
struct PendingWrite: Sendable, Hashable {
    let fragment: UInt64
    let variant: UInt32
    let order: UInt64
    let isExclusive: Bool
    /// The writer that commits it; nil where it is put in one step, or replaces one certain record.
    let writer: UInt64?
    /// Whether a record of a higher order has been published since: then this one is superseded for good.
    var isOvertaken = false
    /// Whether its key was invalidated since: then it must never be seen.
    var isSuperseded = false

    /// Whether it is put in one step.
    var isPut: Bool { writer == nil && !isExclusive }

    /// Whether it is of this identity.
    func isOf(_ fragment: UInt64, _ variant: UInt32) -> Bool {
        self.fragment == fragment && self.variant == variant
    }
}

extension Shard {
    /// Notes that a pending write has ended.
    mutating func endPending(_ fragment: UInt64, _ variant: UInt32, order: UInt64) -> PendingWrite? {
        guard let place = pending.firstIndex(where: { $0.order == order && $0.isOf(fragment, variant) }) else {
            return nil
        }
        return pending.remove(at: place)
    }

    /// Notes that what is pending for an identity below `order` is superseded.
    mutating func overtake(_ fragment: UInt64, _ variant: UInt32, below order: UInt64) {
        for place in pending.indices where pending[place].isOf(fragment, variant) && pending[place].order < order {
            pending[place].isOvertaken = true
        }
    }

    /// Makes sure that nothing that is being put under a primary key is seen.
    mutating func supersedePuts(_ fragment: UInt64) {
        for place in pending.indices where pending[place].fragment == fragment && pending[place].isPut {
            pending[place].isSuperseded = true
        }
    }

    /// Whether a record of the identity may lie on the disk, or come to lie there, of which its row says nothing.
    func mayHide(_ primary: UInt64, _ fragment: UInt64, _ variant: UInt32) -> Bool {
        lingering.contains(primary) || removing.contains(primary) || pending.contains { $0.isOf(fragment, variant) }
    }

    /// Notes that the tombstone of a primary key is written, or has failed to be.
    mutating func endRemoving(_ primary: UInt64, failed: Bool) {
        if let place = removing.firstIndex(of: primary) { removing.remove(at: place) }
        if failed { lingering.note(primary) }
    }
}

extension RowMatches {
    /// The rows in a list.
    var all: [IndexRow] {
        switch self {
        case .none: []
        case .one(let row): [row]
        case .many(let rows): rows
        }
    }
}

extension RowTable {
    /// The oldest variant that is not pinned, where a key has more variants than it may have.
    func surplus(_ fragment: UInt64) -> IndexRow? {
        guard case .many(let rows) = rows(fragment), rows.count > DiskEngine.maximumVariants else { return nil }
        return rows.filter { !$0.isPinned }.min { $0.order < $1.order }
    }
}
