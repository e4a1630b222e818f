// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Finds the records of a segment that has no table, or whose table is damaged, one after the other.
///
/// Where bytes are no record of this segment, the scan goes on 16 bytes further; where they are one, it goes on behind it,
/// so that nothing within a record's body is ever taken for a record. Feed it windows of the file:
///
///     var scan = RecordScan(segment: number, seed: seed)
///     while true {
///         let window = ...                       // bytes of the file from scan.position on
///         while let found = scan.next(in: window, from: start, isLast: atEnd) { ... }
///         if atEnd { break }
///     }
///
/// A window that is not the last has at least ``minimumWindow`` bytes; then the scan gets on with each.
struct RecordScan {
    /// The longest record, and so the smallest window but for the last.
    static let minimumWindow = Geometry.maximumRecord + Geometry.unit

    /// A record of this segment.
    struct Found: Sendable, Hashable {
        /// Its offset in the file.
        let offset: Int
        /// Its header, whose checksum holds.
        let header: RecordHeader
        /// Whether the inline body has its checksum; true where there is none to check.
        let bodyHolds: Bool
    }

    private let segment: UInt64
    private let seed: UInt64

    /// The offset in the file at which to go on: where the next window begins.
    private(set) var position: Int
    /// The offset behind the last record found, a multiple of 16; where the records begin, while none is found.
    private(set) var end: Int
    /// How many bytes before ``end`` were no record: holes that unfinished writes left, or damage.
    private(set) var unparsedBytes = 0

    /// A scan of the segment of this number, from its first record or from `position`, a multiple of 16.
    init(segment: UInt64, seed: UInt64, from position: Int = SegmentHeader.size) {
        self.segment = segment
        self.seed = seed
        self.position = position
        end = position
    }

    /// The next record in `window`, whose first byte is the file's at `start`; nil when there is no other.
    ///
    /// Nil on the last window means that no record follows in the file; on others, that a window is wanted that begins at
    /// ``position``. A record that is cut by the end of the last window is none.
    mutating func next(in window: UnsafeRawBufferPointer, from start: Int, isLast: Bool) -> Found? {
        while position >= start, position - start < window.count {
            let bytes = window.part((position - start)..<window.count)
            if bytes.count < RecordHeader.size, !isLast { return nil }
            guard let header = RecordHeader.read(bytes), header.segment == segment else {
                position += Geometry.unit
                continue
            }
            if header.recordLength > bytes.count, !isLast { return nil }
            guard header.recordLength <= bytes.count, header.isGenuine(bytes, seed: seed) else {
                position += Geometry.unit
                continue
            }
            return take(header, bytes)
        }
        return nil
    }

    private mutating func take(_ header: RecordHeader, _ bytes: UnsafeRawBufferPointer) -> Found {
        let bodyStart = RecordHeader.size + header.detailLength
        let body = bytes.part(bodyStart..<(bodyStart + header.storedBodyLength))
        let holds = header.kind != .entry || header.hasBlob || header.sum(of: body) == header.bodyWord
        let found = Found(offset: position, header: header, bodyHolds: holds)
        unparsedBytes += position - end
        position += header.units * Geometry.unit
        end = position
        return found
    }
}
