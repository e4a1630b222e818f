// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Where a record is: which of the live segments, and which part of it.
struct RecordLocation: Sendable, Hashable {
    /// The segment, by its slot among the live ones; below ``Geometry/maximumSegments``, since the index keeps 12 bits.
    var slot: UInt16
    /// The offset in the segment file, in units of 16 bytes; below 2^30, since the index keeps 30 bits.
    var unit: UInt32
    /// The length of the record, in units of 16 bytes, rounded up.
    var units: UInt16

    /// The offset in the segment file, in bytes.
    var offset: Int { Int(unit) * Geometry.unit }
    /// The length of the record, in bytes, rounded up.
    var byteCount: Int { Int(units) * Geometry.unit }
}

extension RecordLocation {
    /// The place in 58 bits: slot, unit, units, from the highest down; higher bits of slot (above 12) and unit (above 30) are lost.
    var packed: UInt64 {
        (UInt64(slot) & 0xFFF) << 46 | (UInt64(unit) & 0x3FFF_FFFF) << 16 | UInt64(units)
    }

    /// The place in these 58 bits; higher bits are ignored.
    init(packed: UInt64) {
        slot = UInt16(truncatingIfNeeded: packed >> 46) & 0xFFF
        unit = UInt32(truncatingIfNeeded: packed >> 16) & 0x3FFF_FFFF
        units = UInt16(truncatingIfNeeded: packed)
    }
}

/// What the index knows about one entry: enough to read it, to order it and to score it, but not its key.
///
/// The key is compared on the disk. Rows with the same shard, fragment and variant are assumed to belong to the same entry.
struct IndexRow: Sendable, Hashable {
    /// The bits of a fragment. With the shard's six, 49 bits of the primary key's hash identify rows, and 32 of the variant's: with
    /// 1,000,000 entries, the next put meets another entry's row with a probability of 2 in 1,000,000,000.
    static let fragmentBits = 43
    /// The highest order that a row can store; higher ones are stored as this one.
    static let highestOrder: UInt64 = 1 << 48 - 1

    /// The low 43 bits of the primary key's hash, ``ShardedIndex/fragment(of:)``; the index keeps no higher bit.
    var fragment: UInt64
    /// The low 32 bits of the variant key's hash.
    var variant: UInt32
    /// Where the record is.
    var place: RecordLocation
    /// The order number of the record: 1 ... ``highestOrder``; numbers outside are stored as the nearest one.
    var order: UInt64
    /// How often the entry was requested recently, see ``KeyFrequencies``.
    var mark: UInt8 = 0
    /// Whether eviction must skip the entry.
    var isPinned = false
    /// Whether the body is in a blob file.
    var hasBlob = false
    /// Whether an older record of the same identity may still be on the disk.
    var shadows = false

    /// The entry's hash in ``KeyFrequencies`` and ``RetentionPolicy``; independent of the bits that chose the shard.
    var keyHash: UInt32 { UInt32(truncatingIfNeeded: fragment) ^ variant }
}

/// The rows that share a fragment; nearly always none or one, which cost no allocation.
enum RowMatches: Sendable, Hashable {
    case none
    case one(IndexRow)
    /// At least two, by ascending variant.
    case many([IndexRow])
}

/// A row in the 24 bytes that it has in a table. All zero is an empty slot, because no order is 0.
struct PackedRow: BitwiseCopyable, Sendable, Hashable {
    static let size = MemoryLayout<PackedRow>.stride

    /// What identifies and orders rows: the fragment, below it the variant; 75 bits.
    struct Key: Comparable, Sendable {
        /// The fragment and the upper 21 bits of the variant.
        let high: UInt64
        /// The lower 11 bits of the variant.
        let low: UInt64

        /// The key of a row; only the low 43 bits of the fragment count.
        init(fragment: UInt64, variant: UInt32) {
            high = fragment << PackedRow.variantBits | UInt64(variant >> PackedRow.lowBits)
            low = UInt64(variant) & PackedRow.lowMask
        }

        fileprivate init(high: UInt64, low: UInt64) {
            self.high = high
            self.low = low
        }

        static func < (left: Key, right: Key) -> Bool {
            left.high < right.high || left.high == right.high && left.low < right.low
        }
    }

    fileprivate static let variantBits = UInt64(64 - IndexRow.fragmentBits)
    fileprivate static let lowBits = UInt32(32) - UInt32(variantBits)
    fileprivate static let lowMask: UInt64 = 1 << UInt64(lowBits) - 1

    /// The high part of the key.
    private var high: UInt64 = 0
    /// 48 bits of order, 11 of the key's low part, shadows, blob, pinned, the low 2 of the mark.
    private var state: UInt64 = 0
    /// The high 6 bits of the mark, 58 of place.
    private var location: UInt64 = 0

    /// The row's bits; numbers that are too large are clamped.
    init(_ row: IndexRow) {
        let key = Key(fragment: row.fragment, variant: row.variant)
        let order = min(max(row.order, 1), IndexRow.highestOrder)
        high = key.high
        state =
            order << 16
            | key.low << 5
            | (row.shadows ? 1 << 4 : 0)
            | (row.hasBlob ? 1 << 3 : 0)
            | (row.isPinned ? 1 << 2 : 0)
            | UInt64(row.mark & 3)
        location = row.place.packed | UInt64(row.mark >> 2) << 58
    }

    private init() {}

    /// An empty slot, as in fresh pages.
    static let empty = PackedRow()

    var isEmpty: Bool { state == 0 }

    var key: Key { Key(high: high, low: state >> 5 & Self.lowMask) }

    var fragment: UInt64 { high >> Self.variantBits }

    var order: UInt64 { state >> 16 }

    var place: RecordLocation { RecordLocation(packed: location) }

    /// The row unpacked; meaningless for an empty slot.
    var row: IndexRow {
        let upper = UInt32(truncatingIfNeeded: high & (1 << Self.variantBits - 1))
        return IndexRow(
            fragment: fragment,
            variant: upper << Self.lowBits | UInt32(truncatingIfNeeded: state >> 5 & Self.lowMask),
            place: place,
            order: order,
            mark: mark,
            isPinned: state & 1 << 2 != 0,
            hasBlob: state & 1 << 3 != 0,
            shadows: state & 1 << 4 != 0
        )
    }

    /// Whether the slot is empty, or its key is `key` or higher.
    func isNotBelow(_ key: Key) -> Bool {
        isEmpty || high > key.high || high == key.high && state >> 5 & Self.lowMask >= key.low
    }

    /// See ``IndexRow/mark``.
    var mark: UInt8 {
        get { UInt8(truncatingIfNeeded: location >> 58) << 2 | UInt8(truncatingIfNeeded: state & 3) }
        set {
            location = location & (1 << 58 - 1) | UInt64(newValue >> 2) << 58
            state = state & ~3 | UInt64(newValue & 3)
        }
    }
}
