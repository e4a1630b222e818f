// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The primary keys of which a failed write may have left a record on the disk, though the index knows none.
///
/// Whoever removes such a key must write a tombstone even if the index has no row of it. The set is bounded; once it
/// could not take a key in, it says yes to every key until ``removeAll()``.
struct Lingering: Sendable {
    /// The most keys kept apart.
    static let bound = 64

    private var primaries: Set<UInt64> = []

    /// Whether a key was turned away for want of room, so that every key may linger.
    private(set) var isOverfull = false

    /// Nothing lingers.
    init() {}

    /// Whether nothing lingers.
    var isEmpty: Bool { primaries.isEmpty && !isOverfull }

    /// Whether a record of the key with this hash may lie on the disk unknown to the index.
    func contains(_ primary: UInt64) -> Bool {
        isOverfull || primaries.contains(primary)
    }

    /// Notes that a write of this key failed midway.
    mutating func note(_ primary: UInt64) {
        guard primaries.count < Self.bound || primaries.contains(primary) else {
            isOverfull = true
            return
        }
        primaries.insert(primary)
    }

    /// Forgets a key whose tombstone is written; without effect on the answer once the set is overfull.
    mutating func forget(_ primary: UInt64) {
        primaries.remove(primary)
    }

    /// Forgets every key: nothing that lay on the disk is there any more.
    mutating func removeAll() {
        self = Lingering()
    }
}
