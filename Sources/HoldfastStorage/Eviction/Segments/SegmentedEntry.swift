// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// What ``SegmentedPolicy`` knows of the entry in a slot.
struct SegmentedEntry: Sendable {
    fileprivate static let absent: UInt16 = 0x1FFF

    /// 32 bits of the key's hash.
    var hash: UInt32 = 0
    /// Bytes.
    var size: UInt32 = 0
    /// How often it was asked for of late, see ``KeyFrequencies``.
    var mark: UInt8 = 0
    /// 13 bits of the segment's slot, 1 whether it was met.
    fileprivate var bits = SegmentedEntry.absent

    /// The segments that may be there at once, as in a store; slots up to ``absent`` would fit.
    static let maximumSegments = RecordPlace.maximumSlots

    /// The slot of the segment in which the entry lies, below ``maximumSegments``; nil when it is not held.
    var segment: UInt16? {
        get { bits & Self.absent == Self.absent ? nil : bits & Self.absent }
        set { bits = bits & ~Self.absent | (newValue ?? Self.absent) }
    }

    /// Whether it was met already while its segment is gone through.
    var isMet: Bool {
        get { bits & 1 << 15 != 0 }
        set { bits = newValue ? bits | 1 << 15 : bits & ~(1 << 15) }
    }
}

/// The entries by slot, in 11 bytes each.
struct SegmentedTable: Sendable {
    private var keys = CompactArray<UInt64>()
    private var states = CompactArray<UInt16>()
    private var marks = CompactArray<UInt8>()

    /// The bytes of memory taken.
    var bytes: Int { keys.bytes + states.bytes + marks.bytes }
    /// One more than the highest slot.
    var count: Int { keys.count }

    /// Adds a slot that holds nothing.
    mutating func append() {
        keys.append(0)
        states.append(SegmentedEntry.absent)
        marks.append(0)
    }

    subscript(_ slot: Int) -> SegmentedEntry {
        get {
            var entry = SegmentedEntry()
            entry.hash = UInt32(truncatingIfNeeded: keys[slot] >> 32)
            entry.size = UInt32(truncatingIfNeeded: keys[slot])
            entry.bits = states[slot]
            entry.mark = marks[slot]
            return entry
        }
        set {
            keys[slot] = UInt64(newValue.hash) << 32 | UInt64(newValue.size)
            states[slot] = newValue.bits
            marks[slot] = newValue.mark
        }
    }
}

/// A segment of ``SegmentedPolicy``.
struct ModelSegment: Sendable {
    var kind = LogKind.small
    /// Bytes written into it, dead ones included.
    var tail = 0
    /// Bytes of the blobs that its entries brought and that are still there.
    var blobBytes = 0
    /// The entries written into it, in order; some may have left.
    var entries: [UInt32] = []
    /// How many of them have not left.
    var live = 0

    /// What reclaiming it may free.
    var weight: Int { tail + blobBytes }
}
