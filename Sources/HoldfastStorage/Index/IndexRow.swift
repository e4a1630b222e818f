// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// What the index knows of one entry: enough to read it, to order it and to judge its worth, but not its key.
///
/// The key is compared on the disk. Two primary keys may share a fragment; then both rows are found.
struct IndexRow: Sendable, Hashable {
    /// The highest order a row can tell; higher ones are kept as this one.
    static let highestOrder: UInt64 = 1 << 48 - 1
    /// The hits at which a row stops counting.
    static let highestHits: UInt8 = 3

    /// The low 32 bits of the primary key's hash.
    var fragment: UInt32
    /// The low 32 bits of the variant key's hash.
    var variant: UInt32
    /// Where the record lies.
    var place: RecordPlace
    /// The order number of the record: 1 ... ``highestOrder``; numbers outside are kept as the nearest one.
    var order: UInt64
    /// How often the entry was read since it was written or carried forward: 0 ... 3.
    var hits: UInt8
    /// Whether eviction must pass the entry over.
    var isPinned: Bool
    /// Whether the body lies in a blob file.
    var hasBlob: Bool
    /// Whether an older record of the same identity may still lie on the disk.
    var shadows: Bool

    /// A row; by default one that nobody has read yet.
    init(
        fragment: UInt32,
        variant: UInt32,
        place: RecordPlace,
        order: UInt64,
        hits: UInt8 = 0,
        isPinned: Bool = false,
        hasBlob: Bool = false,
        shadows: Bool = false
    ) {
        self.fragment = fragment
        self.variant = variant
        self.place = place
        self.order = order
        self.hits = hits
        self.isPinned = isPinned
        self.hasBlob = hasBlob
        self.shadows = shadows
    }
}

/// The rows that share a fragment; nearly always none or one, and these cost no allocation.
enum RowMatches: Sendable, Hashable {
    case none
    case one(IndexRow)
    /// At least two, by ascending variant.
    case many([IndexRow])
}

/// A row in the 24 bytes it has in a table. All zero is an empty slot, because no order is 0.
struct PackedRow: BitwiseCopyable, Sendable, Hashable {
    static let size = MemoryLayout<PackedRow>.stride

    /// Fragment, then variant: rows ordered by it are ordered by fragment.
    var key: UInt64
    /// 48 bits of order, 11 spare, shadows, blob, pinned, 2 of hits.
    private var state: UInt64
    /// 4 spare bits, 60 of place.
    private var location: UInt64

    /// The row's bits; numbers too large for theirs are clamped.
    init(_ row: IndexRow) {
        key = PackedRow.key(fragment: row.fragment, variant: row.variant)
        let order = min(max(row.order, 1), IndexRow.highestOrder)
        state =
            order << 16
            | (row.shadows ? 1 << 4 : 0)
            | (row.hasBlob ? 1 << 3 : 0)
            | (row.isPinned ? 1 << 2 : 0)
            | UInt64(min(row.hits, IndexRow.highestHits))
        location = row.place.packed
    }

    private init() {
        key = 0
        state = 0
        location = 0
    }

    /// What an empty slot holds, and what fresh pages are full of.
    static let empty = PackedRow()

    /// What rows are ordered by.
    static func key(fragment: UInt32, variant: UInt32) -> UInt64 {
        UInt64(fragment) << 32 | UInt64(variant)
    }

    var isEmpty: Bool { state == 0 }

    var fragment: UInt32 { UInt32(truncatingIfNeeded: key >> 32) }

    var order: UInt64 { state >> 16 }

    var place: RecordPlace { RecordPlace(packed: location) }

    /// The row unpacked; of no meaning for an empty slot.
    var row: IndexRow {
        IndexRow(
            fragment: fragment,
            variant: UInt32(truncatingIfNeeded: key),
            place: place,
            order: order,
            hits: UInt8(truncatingIfNeeded: state & 3),
            isPinned: state & 1 << 2 != 0,
            hasBlob: state & 1 << 3 != 0,
            shadows: state & 1 << 4 != 0
        )
    }

    /// Counts a hit, up to ``IndexRow/highestHits``.
    mutating func touch() {
        if state & 3 != 3 { state += 1 }
    }
}
