// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The bytes of a record as a look-up read them: what a stored entry shows comes from here, and its inline body with it.
///
/// All of it lies in memory, so an inline body can be had whatever the store does with the entry meanwhile.
struct RecordSource: Sendable {
    /// The row that led here, for telling damage from a record that was overtaken while it was read.
    let row: IndexRow
    let epoch: UInt64
    let header: RecordHeader
    /// The whole record.
    let bytes: ByteChunk

    /// The stored form of an inline body.
    var inlineBytes: ByteChunk {
        let start = RecordHeader.size + header.detailLength
        return bytes[start..<(start + header.inlineLength)]
    }

    /// The stored form of the detail.
    var detailBytes: ByteChunk {
        bytes[RecordHeader.size..<(RecordHeader.size + header.detailLength)]
    }
}
