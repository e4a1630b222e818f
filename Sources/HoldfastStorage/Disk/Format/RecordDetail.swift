// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The part of an entry's record that holds what callers gave: keys, tags and metadata, in plain form.
///
/// Primary key, variant key, tags in the order of their UTF-8 bytes, metadata; each run of bytes comes after its count.
struct RecordDetail: Sendable, Hashable {
    /// The primary key.
    var key: StoreKey
    /// The variant key.
    var variant: StoreKey
    /// The tags.
    var tags: Set<String>
    /// The caller's bytes; decoded ones share the storage they were decoded from.
    var metadata: ByteChunk

    /// The bytes of a detail in which nothing is longer than its count can say.
    ///
    /// Tags that a 16-bit count cannot hold are left out: a store takes far fewer and shorter ones.
    ///
    /// - Parameters:
    ///   - room: bytes left free before the detail, for a header.
    ///   - body: what follows it at once.
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
            // The room is the caller's to fill.
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
            RecordDetail(
                key: StoreKey(bytes[layout.key].array),
                variant: layout.variant.isEmpty ? StoreKey([]) : StoreKey(bytes[layout.variant].array),
                tags: layout.tags,
                metadata: bytes[layout.metadata]
            )
        }
    }

    /// The detail in `bytes`, if its primary key is `knownKey`: the way of a hit, which makes no new key.
    ///
    /// Nil as in ``decode(_:)``, and where the key is another one. Allocates for a variant key and for tags, if there are
    /// any, and for nothing else.
    static func decode(_ bytes: ByteChunk, knownKey: StoreKey) -> RecordDetail? {
        bytes.withUnsafeBytes { Layout($0, of: knownKey) }.map { RecordDetail($0, of: knownKey, in: bytes, from: 0) }
    }

    /// The detail of this layout, which begins at `start` of `bytes`.
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

    fileprivate static func areEqual(_ left: UnsafeRawBufferPointer, _ right: UnsafeRawBufferPointer) -> Bool {
        guard left.count == right.count else { return false }
        var place = 0
        while place + 8 <= left.count {
            guard left.number(at: place, as: UInt64.self) == right.number(at: place) else { return false }
            place += 8
        }
        while place < left.count {
            guard left[place] == right[place] else { return false }
            place += 1
        }
        return true
    }

    /// Where the parts of a detail lie.
    struct Layout {
        let key: Range<Int>
        let variant: Range<Int>
        let metadata: Range<Int>
        let tags: Set<String>

        init?(_ bytes: UnsafeRawBufferPointer) {
            var place = 0
            guard let key = Self.counted(bytes, &place, UInt32.self),
                let variant = Self.counted(bytes, &place, UInt32.self),
                let tags = Self.tags(bytes, &place),
                let metadata = Self.counted(bytes, &place, UInt32.self),
                place == bytes.count
            else { return nil }
            self.key = key
            self.variant = variant
            self.metadata = metadata
            self.tags = tags
        }

        /// Nil also where the primary key is another one.
        @inline(__always)
        init?(_ bytes: UnsafeRawBufferPointer, of key: StoreKey) {
            guard let found = Layout(bytes), key.bytes.withUnsafeBytes({ areEqual($0, bytes.part(found.key)) }) else {
                return nil
            }
            self = found
        }

        /// The range of bytes behind their count, and `place` behind them; nil where they do not lie in `bytes`.
        @inline(__always)
        private static func counted<Count: FixedWidthInteger & BitwiseCopyable>(
            _ bytes: UnsafeRawBufferPointer,
            _ place: inout Int,
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

        private static func tags(_ bytes: UnsafeRawBufferPointer, _ place: inout Int) -> Set<String>? {
            guard bytes.count - place >= 2 else { return nil }
            let count = bytes.number(at: place, as: UInt16.self)
            place += 2
            var tags: Set<String> = []
            var previous: UnsafeRawBufferPointer?
            for _ in 0..<count {
                guard let range = counted(bytes, &place, UInt16.self) else { return nil }
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
