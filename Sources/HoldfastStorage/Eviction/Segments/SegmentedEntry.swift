// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// A slot's record in ``SegmentedPolicy``: 12 bytes.
struct SegmentedEntry: Sendable {
    private static let absent: UInt32 = 0xFFFF

    /// 32 bits of the key's hash.
    var hash: UInt32 = 0
    /// Bytes.
    var size: UInt32 = 0
    /// 16 of the segment's slot, 2 of uses, 1 mark.
    private var bits = SegmentedEntry.absent

    /// The slot of the segment in which the entry lies; nil when it is not held.
    var segment: UInt16? {
        get { bits & 0xFFFF == Self.absent ? nil : UInt16(truncatingIfNeeded: bits) }
        set { bits = bits & ~0xFFFF | (newValue.map { UInt32($0) } ?? Self.absent) }
    }

    /// How often it was used since it was written or carried, up to 3.
    var uses: UInt8 {
        get { UInt8(truncatingIfNeeded: bits >> 16 & 3) }
        set { bits = bits & ~(3 << 16) | UInt32(min(3, newValue)) << 16 }
    }

    /// Whether it was met already while its segment is gone through.
    var isMarked: Bool {
        get { bits & 1 << 18 != 0 }
        set { bits = newValue ? bits | 1 << 18 : bits & ~(1 << 18) }
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

    /// What reclaiming it may free.
    var weight: Int { tail + blobBytes }
}
