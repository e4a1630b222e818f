// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Tombstones that the device refused; they are tried again, since what they kill must not come back.
struct OwedNotes: Sendable {
    static let maximum = 4_096

    /// One tombstone.
    struct Note: Sendable, Hashable {
        let kind: RecordKind
        let order: UInt64
        let primary: UInt64
        let variant: UInt32
    }

    var notes: [Note] = []
    /// Whether more were refused than are remembered.
    var isOverfull = false

    /// Whether anything is owed.
    var isEmpty: Bool { notes.isEmpty && !isOverfull }
}
