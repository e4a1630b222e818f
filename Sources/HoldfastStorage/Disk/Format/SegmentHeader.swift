// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Which of a store's two logs a segment belongs to.
package enum LogKind: UInt8, Sendable, Hashable, CaseIterable {
    /// Where new entries go.
    case small = 0
    /// Where entries go that were used, or came back soon after they were evicted.
    case main = 1
}

/// The first 64 bytes of a segment's file.
///
/// A recycled file holds the bytes of an older segment behind its tail, so nothing in it counts unless this header names
/// the number in the file's name.
struct SegmentHeader: Sendable, Hashable {
    /// Bytes before the first record.
    static let size = 64

    /// `HFSEGMNT`.
    static let magic: UInt64 = 0x544E_4D47_4553_4648

    /// The log it belongs to.
    var kind: LogKind
    /// The number in the file's name.
    var number: UInt64
    /// The epoch in which it was begun.
    var epoch: UInt64
    /// The next order number when it was begun: a new record has at least this one, a carried one may have a lower.
    var createdOrder: UInt64
    /// A random number that no other segment of the directory bears, one that had the same number included.
    var identity: UInt64 = 0

    /// The 64 bytes.
    func encode(seed: UInt64) -> [UInt8] {
        [UInt8](zeroed: Self.size) { header in
            header.put(Self.magic, at: 0)
            header.put(StoreFormat.version, at: 8)
            header.put(kind.rawValue, at: 12)
            header.put(number, at: 16)
            header.put(epoch, at: 24)
            header.put(createdOrder, at: 32)
            header.put(identity, at: 40)
            header.put(HeadHash.of(UnsafeRawBufferPointer(header).part(0..<56), seed: seed), at: 56)
        }
    }

    /// The header at the start of `bytes`; nil when there is none of this version and seed. Whoever calls compares
    /// ``number`` with the file's name.
    static func decode(_ bytes: [UInt8], seed: UInt64) -> SegmentHeader? {
        bytes.withUnsafeBytes { header in
            guard header.count >= size,
                header.number(at: 0) == magic,
                header.number(at: 8) == StoreFormat.version,
                header.number(at: 56) == HeadHash.of(header.part(0..<56), seed: seed),
                let kind = LogKind(rawValue: header[12]),
                header.isZero(13..<16),
                header.isZero(48..<56)
            else { return nil }
            return SegmentHeader(
                kind: kind,
                number: header.number(at: 16),
                epoch: header.number(at: 24),
                createdOrder: header.number(at: 32),
                identity: header.number(at: 40)
            )
        }
    }
}
