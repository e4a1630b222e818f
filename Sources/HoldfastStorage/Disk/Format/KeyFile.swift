// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Where the body of an entry lies on the disk and what its bytes must amount to.
struct BodyPlace: Sendable, Hashable {
    /// Bytes under one checksum.
    static let chunkSize = 65_536

    /// The number of the body's file; 0 for an empty body, which has none.
    var file: UInt64
    /// One checksum for each chunk; the last chunk may be short.
    var checksums: [UInt64]

    /// How many chunks a body of this length has.
    static func chunkCount(_ length: Int) -> Int {
        length / chunkSize + (length % chunkSize == 0 ? 0 : 1)
    }

    /// The checksum of one chunk; a chunk in another place or file has another.
    static func checksum(_ bytes: UnsafeRawBufferPointer, file: UInt64, chunk: Int) -> UInt64 {
        Checksum.of(bytes, seed: file &+ UInt64(truncatingIfNeeded: chunk) &* 0x9E37_79B9_7F4A_7C15)
    }
}

/// The format of the file that holds one primary key and the records of all its variants.
///
/// Magic and version (8 bytes), checksum of all that follows (8), number of the file (8), primary key, records. Numbers
/// are little-endian; runs of bytes come after their count. One file for all variants makes each change of a key one
/// rename or one removal.
enum KeyFile {
    typealias Record = EntryIndex<BodyPlace>.Record

    /// The size a file may have: enough for bodies of half a terabyte, and no more than can be read into memory at once.
    static let maximumSize = 1 << 26

    private static let magic = Array("HFKEY\u{1}\r\n".utf8)

    /// The whole file.
    static func encode(_ key: StoreKey, _ records: [Record], file: UInt64) -> [UInt8] {
        var content = ByteEncoder()
        content.put(file)
        content.put(counted: key.bytes)
        content.put(UInt32(truncatingIfNeeded: records.count))
        for record in records { put(record, into: &content) }
        var whole = ByteEncoder()
        whole.put(raw: magic)
        whole.put(Checksum.of(content.bytes, seed: file))
        whole.put(raw: content.bytes)
        return whole.bytes
    }

    /// The key and the records, newest first; nil when anything about the bytes is not as it was written.
    static func decode(_ bytes: [UInt8], file: UInt64) -> (key: StoreKey, records: [Record])? {
        var decoder = ByteDecoder(bytes[...])
        guard decoder.raw(magic.count)?.elementsEqual(magic) == true, let sum = decoder.number(UInt64.self) else {
            return nil
        }
        let content = bytes[(bytes.count - decoder.remaining)...]
        guard content.withUnsafeBytes({ Checksum.of($0, seed: file) }) == sum else { return nil }
        return decodeContent(content, file: file)
    }

    /// What lies beneath the checksum, which fuzzing would never get past.
    static func decodeContent(_ content: ArraySlice<UInt8>, file: UInt64) -> (key: StoreKey, records: [Record])? {
        var decoder = ByteDecoder(content)
        guard decoder.number(UInt64.self) == file, let key = decoder.counted(), let count = decoder.number(UInt32.self)
        else { return nil }
        let primary = StoreKey(Array(key))
        var records: [Record] = []
        for _ in 0..<count {
            guard let record = record(of: primary, from: &decoder) else { return nil }
            records.append(record)
        }
        guard decoder.remaining == 0, Set(records.map(\.entry.variant)).count == records.count else { return nil }
        return (primary, records.sorted { $0.entry.version > $1.entry.version })
    }

    private static func put(_ record: Record, into content: inout ByteEncoder) {
        let entry = record.entry
        content.put(counted: entry.variant.bytes)
        content.put(entry.version.number)
        content.put(entry.storedAt.milliseconds)
        content.put(UInt8(entry.isPinned ? 1 : 0))
        content.put(entry.description.uselessAfter.milliseconds)
        content.put(counted: entry.description.metadata)
        content.put(UInt64(entry.description.tags.count))
        for tag in entry.description.tags { content.put(counted: tag.utf8) }
        content.put(UInt64(entry.bodyLength))
        content.put(record.body.file)
        for checksum in record.body.checksums { content.put(checksum) }
    }

    private static func record(of key: StoreKey, from decoder: inout ByteDecoder) -> Record? {
        guard let variant = decoder.counted(),
            let version = decoder.number(UInt64.self),
            let storedAt = decoder.number(Int64.self),
            let pinned = decoder.number(UInt8.self),
            let uselessAfter = decoder.number(Int64.self),
            let metadata = decoder.counted(),
            let tagCount = decoder.count(ofWidth: 8)
        else { return nil }
        var tags: Set<String> = []
        for _ in 0..<tagCount {
            guard let tag = decoder.counted() else { return nil }
            tags.insert(String(decoding: tag, as: UTF8.self))
        }
        guard let length = decoder.number(UInt64.self).flatMap({ Int(exactly: $0) }),
            let file = decoder.number(UInt64.self)
        else { return nil }
        let chunks = BodyPlace.chunkCount(length)
        guard chunks <= decoder.remaining / 8, (file == 0) == (length == 0) else { return nil }
        let checksums = (0..<chunks).compactMap { _ in decoder.number(UInt64.self) }
        let entry = StoredEntry(
            key: key,
            variant: StoreKey(Array(variant)),
            version: StoredEntry.Version(number: version),
            description: EntryDescription(
                metadata: ByteChunk(copying: metadata),
                uselessAfter: StoreInstant(milliseconds: uselessAfter),
                tags: tags
            ),
            bodyLength: length,
            storedAt: StoreInstant(milliseconds: storedAt),
            isPinned: pinned == 1
        )
        return Record(entry: entry, body: BodyPlace(file: file, checksums: checksums))
    }
}
