// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// What a record does.
enum RecordKind: UInt8, Sendable, Hashable, CaseIterable {
    /// Contains an entry.
    case entry = 1
    /// Kills the older entries of a primary key, all variants of it.
    case primaryTombstone = 2
    /// Kills the older entries of one variant.
    case variantTombstone = 3
    /// Kills every older entry with a tag, whose hash is in `primary`.
    case tagMark = 4
    /// Kills every older entry whose key begins with the bytes of the detail.
    case prefixMark = 5
}

/// The first 104 bytes of a record in a segment.
///
/// After it come the detail and, unless the body is a blob, the body; the next record starts at the next multiple of 16.
struct RecordHeader: Sendable, Hashable {
    /// Bytes before the detail.
    static let size = 104

    private static let magic: UInt32 = 0x4352_4648  // HFRC
    /// Distinguishes a record's checksum from other hashes with the same seed.
    private static let seedMask: UInt64 = 0x5245_434F_5244_3A32
    private static let hashed = 96

    var kind: RecordKind
    /// Whether the entry is pinned against eviction.
    var isPinned = false
    /// Whether the body is in its own blob file.
    var hasBlob = false
    /// The number of the segment that the record was written to.
    var segment: UInt64
    /// Which record of an identity counts: the one with the highest order.
    var order: UInt64
    /// The version that callers see.
    var version: UInt64 = 0
    /// The hash of the primary key; of a tag in a tag mark.
    var primary: UInt64
    /// The hash of the variant key.
    var variant: UInt32 = 0
    /// The key that sealed detail and body; 0 if they are not sealed.
    var keyID: UInt32 = 0
    var storedAt = StoreInstant(milliseconds: 0)
    var uselessAfter = StoreInstant.distantFuture
    /// The highest segment number that existed when this order was first written.
    var horizon: UInt64 = 0
    /// The length of the plain body.
    var bodyLength = 0
    /// The ``BodySum`` of the inline body as stored, seeded with the order; with a blob, the blob's number.
    var bodyWord: UInt64 = 0
    /// The length of the stored detail; ``encode(detail:seed:)`` uses that of its argument.
    var detailLength = 0
    /// The length of the stored inline body; with a blob, the plain bytes in each of its chunks.
    var inlineLength = 0

    /// The bytes of the body that follow the detail: none with a blob.
    var storedBodyLength: Int { hasBlob ? 0 : inlineLength }

    /// The size of the file of this record's blob.
    var storedBlobBytes: Int {
        BlobChunk.storedSize(plain: bodyLength, perChunk: inlineLength, overhead: BlobChunk.payload - inlineLength)
    }

    /// The length of the whole record, without the zeros before the next one.
    var recordLength: Int {
        let length = Self.size.addingReportingOverflow(detailLength)
        let whole = length.partialValue.addingReportingOverflow(storedBodyLength)
        return length.overflow || whole.overflow ? .max : whole.partialValue
    }

    /// The space that record and blob take on the disk.
    var bytesTaken: Int { (units * Geometry.unit).addingSaturated(hasBlob ? SpaceQuota.blocks(storedBlobBytes) : 0) }

    /// The units of 16 bytes that the record occupies.
    var units: Int {
        recordLength / Geometry.unit + (recordLength % Geometry.unit == 0 ? 0 : 1)
    }

    /// The checksum of a stored inline body, which ``bodyWord`` must equal.
    func sum(of body: UnsafeRawBufferPointer) -> UInt64 {
        BodySum.of(body, seed: order)
    }

    /// The checksum of a stored inline body, which ``bodyWord`` must equal.
    func sum(of body: ByteChunk) -> UInt64 {
        BodySum.of(body, seed: order)
    }

    /// The header followed by the detail, in one array; the body follows directly.
    func encode(detail: ByteChunk, seed: UInt64) -> [UInt8] {
        let count = Self.size + detail.count
        return [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
            let bytes = UnsafeMutableRawBufferPointer(start: buffer.baseAddress, count: count)
            detail.withUnsafeBytes { bytes.put($0, at: Self.size) }
            put(into: bytes, detailLength: detail.count, seed: seed)
            filled = count
        }
    }

    /// Puts the header into the space before a detail of ``detailLength`` bytes, whatever follows that.
    func put(into record: inout [UInt8], seed: UInt64) {
        precondition(record.count >= Self.size + detailLength, "a record has no room for its header")
        record.withUnsafeMutableBytes { put(into: $0, detailLength: detailLength, seed: seed) }
    }

    private func put(into bytes: UnsafeMutableRawBufferPointer, detailLength: Int, seed: UInt64) {
        bytes.put(Self.magic, at: 0)
        bytes.put(kind.rawValue, at: 4)
        bytes.put(UInt8(isPinned ? 1 : 0) | UInt8(hasBlob ? 2 : 0), at: 5)
        bytes.put(UInt16(0), at: 6)
        bytes.put(segment, at: 8)
        bytes.put(order, at: 16)
        bytes.put(version, at: 24)
        bytes.put(primary, at: 32)
        bytes.put(variant, at: 40)
        bytes.put(keyID, at: 44)
        bytes.put(storedAt.milliseconds, at: 48)
        bytes.put(uselessAfter.milliseconds, at: 56)
        bytes.put(horizon, at: 64)
        bytes.put(UInt64(clamping: bodyLength), at: 72)
        bytes.put(bodyWord, at: 80)
        bytes.put(UInt32(clamping: detailLength), at: 88)
        bytes.put(UInt32(clamping: inlineLength), at: 92)
        let written = UnsafeRawBufferPointer(bytes)
        let detail = written.part(Self.size..<(Self.size + detailLength))
        bytes.put(
            HeadHash.of(written.part(0..<Self.hashed), more: detail, seed: seed ^ Self.seedMask),
            at: Self.hashed
        )
    }

    /// The header of the record at the start of `bytes`.
    ///
    /// Nil unless magic and sizes are right, the whole record (header, detail and inline body) is within `bytes`, and the checksum
    /// over header and detail is right for `seed`. The body is not read.
    static func decode(_ bytes: UnsafeRawBufferPointer, seed: UInt64) -> RecordHeader? {
        guard let header = read(bytes), header.recordLength <= bytes.count, header.isGenuine(bytes, seed: seed) else {
            return nil
        }
        return header
    }

    /// The header of the entry that a row leads to; nil if another record is in its place.
    @inline(__always)
    static func decode(
        _ bytes: UnsafeRawBufferPointer,
        of row: IndexRow,
        in segment: UInt64,
        seed: UInt64
    ) -> RecordHeader? {
        guard let header = decode(bytes, seed: seed), header.kind == .entry, header.segment == segment,
            header.order == row.order
        else { return nil }
        return header
    }

    /// The fields of a header, not confirmed by a checksum yet; nil if they cannot be those of a record.
    static func read(_ bytes: UnsafeRawBufferPointer) -> RecordHeader? {
        guard bytes.count >= size,
            bytes.number(at: 0) == magic,
            let kind = RecordKind(rawValue: bytes[4]),
            bytes[5] <= 3,
            bytes.number(at: 6) == UInt16(0),
            let bodyLength = Int(exactly: bytes.number(at: 72, as: UInt64.self)),
            let detailLength = Int(exactly: bytes.number(at: 88, as: UInt32.self)),
            let inlineLength = Int(exactly: bytes.number(at: 92, as: UInt32.self))
        else { return nil }
        let header = RecordHeader(
            kind: kind,
            isPinned: bytes[5] & 1 != 0,
            hasBlob: bytes[5] & 2 != 0,
            segment: bytes.number(at: 8),
            order: bytes.number(at: 16),
            version: bytes.number(at: 24),
            primary: bytes.number(at: 32),
            variant: bytes.number(at: 40),
            keyID: bytes.number(at: 44),
            storedAt: StoreInstant(milliseconds: bytes.number(at: 48)),
            uselessAfter: StoreInstant(milliseconds: bytes.number(at: 56)),
            horizon: bytes.number(at: 64),
            bodyLength: bodyLength,
            bodyWord: bytes.number(at: 80),
            detailLength: detailLength,
            inlineLength: inlineLength
        )
        return header.recordLength <= Geometry.maximumRecord && header.hasPossibleBody ? header : nil
    }

    /// Whether the checksum over header and detail is right; `bytes` contain both.
    func isGenuine(_ bytes: UnsafeRawBufferPointer, seed: UInt64) -> Bool {
        let detail = bytes.part(Self.size..<(Self.size + detailLength))
        return bytes.number(at: Self.hashed)
            == HeadHash.of(bytes.part(0..<Self.hashed), more: detail, seed: seed ^ Self.seedMask)
    }

    /// Writes another segment number and the matching checksum into a record that is carried forward unchanged.
    ///
    /// Returns false, and changes nothing, if `record` does not start with a complete and genuine record: damage must not get a
    /// valid checksum.
    @discardableResult
    static func restamp(_ record: inout [UInt8], segment: UInt64, seed: UInt64) -> Bool {
        record.withUnsafeMutableBytes { restamp($0, segment: segment, seed: seed) }
    }

    static func restamp(_ bytes: UnsafeMutableRawBufferPointer, segment: UInt64, seed: UInt64) -> Bool {
        guard let header = decode(UnsafeRawBufferPointer(bytes), seed: seed) else { return false }
        bytes.put(segment, at: 8)
        let written = UnsafeRawBufferPointer(bytes)
        let detail = written.part(size..<(size + header.detailLength))
        bytes.put(HeadHash.of(written.part(0..<hashed), more: detail, seed: seed ^ seedMask), at: hashed)
        return true
    }

    /// Whether kind and lengths match.
    private var hasPossibleBody: Bool {
        guard kind == .entry else { return !hasBlob && bodyLength == 0 && inlineLength == 0 }
        if hasBlob { return inlineLength >= 1 && inlineLength <= BlobChunk.payload }
        return keyID == 0 ? bodyLength == inlineLength : bodyLength <= inlineLength
    }
}

/// The part of an entry's record with the caller's data: keys, tags and metadata, in plain form.
///
/// Primary key, variant key, tags in the order of their UTF-8 bytes, metadata; each after its count.
struct RecordDetail: Sendable, Hashable {
    /// The primary key.
    var key: StoreKey
    /// The variant key.
    var variant: StoreKey
    /// The tags.
    var tags: Set<String>
    /// The caller's bytes; decoded ones share the storage that they were decoded from.
    var metadata: ByteChunk

    /// The bytes of a detail; nothing may be longer than its count can express.
    ///
    /// Tags that do not fit a 16-bit count are omitted: a store accepts far fewer and shorter ones.
    ///
    /// - Parameters:
    ///   - room: bytes left free before the detail, for a header.
    ///   - body: what follows it directly.
    func encode(after room: Int = 0, before body: ByteChunk = ByteChunk()) -> [UInt8] {
        let tags = tags.isEmpty ? [] : Self.ordered(tags)
        let count =
            room + 14 + key.bytes.count + variant.bytes.count + metadata.count + tags.reduce(0) { $0 + 2 + $1.count }
            + body.count
        return [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
            let bytes = UnsafeMutableRawBufferPointer(start: buffer.baseAddress, count: count)
            var place = room
            func put(counted part: UnsafeRawBufferPointer) {
                bytes.put(UInt32(clamping: part.count), at: place)
                bytes.put(part, at: place + 4)
                place += 4 + part.count
            }
            key.bytes.withUnsafeBytes { put(counted: $0) }
            variant.bytes.withUnsafeBytes { put(counted: $0) }
            bytes.put(UInt16(clamping: tags.count), at: place)
            place += 2
            for tag in tags {
                bytes.put(UInt16(clamping: tag.count), at: place)
                tag.withUnsafeBytes { bytes.put($0, at: place + 2) }
                place += 2 + tag.count
            }
            metadata.withUnsafeBytes { put(counted: $0) }
            if !body.isEmpty { body.withUnsafeBytes { bytes.put($0, at: place) } }
            // The caller fills the room.
            filled = count
        }
    }

    private static func ordered(_ tags: Set<String>) -> [[UInt8]] {
        Array(
            tags.map { Array($0.utf8) }
                .filter { $0.count <= Int(UInt16.max) }
                .sorted { $0.lexicographicallyPrecedes($1) }
                .prefix(Int(UInt16.max))
        )
    }

    /// The detail in `bytes`; nil unless the counts fill them exactly and the tags are UTF-8 in ascending order.
    static func decode(_ bytes: ByteChunk) -> RecordDetail? {
        bytes.withUnsafeBytes { Layout($0) }.map { layout in
            RecordDetail(layout, of: StoreKey(bytes[layout.key].array), in: bytes, from: 0)
        }
    }

    /// The detail in `bytes`, if its primary key is `knownKey`: used for hits, since it makes no new key.
    ///
    /// Nil as in ``decode(_:)``, and if the key is another one. Allocates only for a variant key and for tags, if there are any.
    static func decode(_ bytes: ByteChunk, knownKey: StoreKey) -> RecordDetail? {
        bytes.withUnsafeBytes { Layout($0, of: knownKey) }.map { RecordDetail($0, of: knownKey, in: bytes, from: 0) }
    }

    /// The detail of this layout, which begins at `start` in `bytes`.
    @inline(__always)
    init(_ layout: Layout, of key: StoreKey, in bytes: ByteChunk, from start: Int) {
        self.key = key
        let (variant, metadata) = (layout.variant, layout.metadata)
        self.variant = StoreKey(
            variant.isEmpty ? [] : bytes[(start + variant.lowerBound)..<(start + variant.upperBound)].array
        )
        tags = layout.tags
        self.metadata = bytes[(start + metadata.lowerBound)..<(start + metadata.upperBound)]
    }

    init(key: StoreKey, variant: StoreKey, tags: Set<String>, metadata: ByteChunk) {
        (self.key, self.variant, self.tags, self.metadata) = (key, variant, tags, metadata)
    }

    /// Where the parts of a detail are.
    struct Layout {
        let key: Range<Int>
        let variant: Range<Int>
        let metadata: Range<Int>
        let tags: Set<String>

        init?(_ bytes: UnsafeRawBufferPointer) {
            var place = 0
            guard let key = Self.counted(bytes, place: &place, UInt32.self),
                let variant = Self.counted(bytes, place: &place, UInt32.self),
                let tags = Self.tags(bytes, place: &place),
                let metadata = Self.counted(bytes, place: &place, UInt32.self),
                place == bytes.count
            else { return nil }
            self.key = key
            self.variant = variant
            self.metadata = metadata
            self.tags = tags
        }

        /// Also nil if the primary key is another one.
        @inline(__always)
        init?(_ bytes: UnsafeRawBufferPointer, of key: StoreKey) {
            guard let found = Layout(bytes), key.bytes.withUnsafeBytes({ $0.isEqual(to: bytes.part(found.key)) }) else {
                return nil
            }
            self = found
        }

        /// The range of bytes after their count, with `place` moved after them; nil if they are not within `bytes`.
        @inline(__always)
        private static func counted<Count: FixedWidthInteger & BitwiseCopyable>(
            _ bytes: UnsafeRawBufferPointer,
            place: inout Int,
            _: Count.Type
        ) -> Range<Int>? {
            let width = Count.bitWidth / 8
            guard bytes.count - place >= width,
                let count = Int(exactly: bytes.number(at: place, as: Count.self)),
                count <= bytes.count - place - width
            else { return nil }
            let start = place + width
            place = start + count
            return start..<place
        }

        private static func tags(_ bytes: UnsafeRawBufferPointer, place: inout Int) -> Set<String>? {
            guard bytes.count - place >= 2 else { return nil }
            let count = bytes.number(at: place, as: UInt16.self)
            place += 2
            var tags: Set<String> = []
            var previous: UnsafeRawBufferPointer?
            for _ in 0..<count {
                guard let range = counted(bytes, place: &place, UInt16.self) else { return nil }
                let utf8 = bytes.part(range)
                if let previous, !previous.lexicographicallyPrecedes(utf8) { return nil }
                guard let tag = String(validating: utf8, as: UTF8.self) else { return nil }
                tags.insert(tag)
                previous = utf8
            }
            return tags
        }
    }
}
