// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// An entry about to be written: everything a record says but what is decided when its place is reserved.
struct EntryDraft: Sendable {
    /// Where the body is.
    enum Body: Sendable {
        /// In the record, in plain form here.
        case inline(ByteChunk)
        /// In a blob file.
        case blob(number: UInt64, length: Int, storedBytes: Int, plainPerChunk: Int)
    }

    let key: StoreKey
    let variant: StoreKey
    let identity: EntryIdentity
    var description: EntryDescription
    var body: Body
    var storedAt: StoreInstant
    /// The version it keeps; nil: its order becomes its version.
    var version: UInt64?

    /// The plain body's length.
    var bodyLength: Int {
        switch body {
        case .inline(let bytes): bytes.count
        case .blob(_, let length, _, _): length
        }
    }

    /// Bytes of the blob file, 0 for an inline body.
    var blobBytes: Int {
        if case .blob(_, _, let storedBytes, _) = body { storedBytes } else { 0 }
    }

    /// The number of the body's blob; nil for an inline body.
    var blobNumber: UInt64? {
        if case .blob(let number, _, _, _) = body { number } else { nil }
    }

    /// Whether the body is a blob.
    var hasBlob: Bool {
        if case .blob = body { true } else { false }
    }
}

/// An entry's record in the making: room for the header, the detail in plain form, and a short body right behind it.
struct RecordBytes: Sendable {
    /// Bodies up to this length are copied behind the detail, since one buffer is written quicker than two.
    static let shortBody = 4_096

    var bytes: [UInt8]
    let detailLength: Int
    /// The inline body in plain form.
    let body: ByteChunk

    init(_ draft: EntryDraft, isSealed: Bool) {
        let detail = RecordDetail(
            key: draft.key,
            variant: draft.variant,
            tags: draft.description.tags,
            metadata: draft.description.metadata
        )
        body = if case .inline(let bytes) = draft.body { bytes } else { ByteChunk() }
        let follows = !isSealed && body.count <= Self.shortBody ? body : ByteChunk()
        bytes = detail.encode(after: RecordHeader.size, before: follows)
        detailLength = bytes.count - RecordHeader.size - follows.count
    }

    /// Whether the body stands behind the detail.
    var holdsBody: Bool { bytes.count > RecordHeader.size + detailLength }

    /// The detail.
    var detail: ByteChunk { ByteChunk(bytes)[RecordHeader.size..<(RecordHeader.size + detailLength)] }
}

/// A record whose place is reserved: what is to be written there.
struct ReservedRecord: Sendable {
    let place: LogState.Place
    var header: RecordHeader
    let blob: BlobRow?

    /// Where the index is to find it.
    var indexPlace: RecordPlace {
        RecordPlace(
            slot: place.segment.slot,
            unit: UInt32(truncatingIfNeeded: place.offset / 16),
            units: UInt16(truncatingIfNeeded: (place.length + 15) / 16)
        )
    }

    /// What the table of its segment says of it.
    var tableRow: TableRow {
        TableRow(header, place: UInt32(truncatingIfNeeded: place.offset / 16))
    }
}
