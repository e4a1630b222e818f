// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// A record of an identity between the reservation of its place and its publication.
///
/// A put may overtake another put: orders decide. What replaces one certain record (a freshening, a change of a pin) must be
/// alone, since its order says nothing of the body that it keeps.
struct PendingWrite: Sendable, Hashable {
    let fragment: UInt32
    let variant: UInt32
    var isExclusive: Bool

    /// Whether both are of one identity.
    func isSame(_ other: PendingWrite) -> Bool {
        fragment == other.fragment && variant == other.variant
    }
}

extension Shard {
    /// Notes that a pending write has ended.
    mutating func removePending(_ fragment: UInt32, _ variant: UInt32) {
        guard let place = pending.firstIndex(where: { $0.fragment == fragment && $0.variant == variant }) else { return }
        pending.remove(at: place)
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
    /// Changes the row of a fragment and variant, wherever it is.
    mutating func change(_ fragment: UInt32, variant: UInt32, _ body: (inout IndexRow) -> Void) {
        guard let row = row(fragment, variant: variant) else { return }
        _ = update(fragment, variant: variant, at: row.place, body)
    }

    /// The rows of a fragment, each counted as hit.
    mutating func touchRows(_ fragment: UInt32) -> RowMatches {
        let matches = rows(fragment)
        switch matches {
        case .none: break
        case .one(let row): touch(fragment, variant: row.variant, at: row.place)
        case .many(let rows): for row in rows { touch(fragment, variant: row.variant, at: row.place) }
        }
        return matches
    }

    /// The oldest variant that is not pinned, where a key has more variants than it may have.
    func surplus(_ fragment: UInt32) -> IndexRow? {
        guard case .many(let rows) = rows(fragment), rows.count > DiskEngine.maximumVariants else { return nil }
        return rows.filter { !$0.isPinned }.min { $0.order < $1.order }
    }
}
