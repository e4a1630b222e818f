// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The sizes of a store's files, which all follow from its capacity.
struct Geometry: Sendable, Hashable {
    /// The smallest capacity a store can have: 1 MiB.
    static let minimumCapacity = 1 << 20
    /// Segments are whole pages of this many bytes.
    static let page = 4_096
    /// The smallest segment: a sixteenth of the smallest capacity.
    static let minimumSegmentSize = minimumCapacity / 16
    /// The largest segment, 16 GiB: the index keeps 30 bits of a record's place in units of 16 bytes.
    static let maximumSegmentSize = 16 << 30
    /// Records start at multiples of this many bytes.
    static let unit = 16
    /// The longest record any store can hold, including header, detail and inline body: its units fit into 16 bits.
    static let maximumRecord = (1 << 20) - 16
    /// How many segments may be live at once: their slots fit into 12 bits.
    static let maximumSegments = 4_095
    /// The largest capacity that a store makes use of: just below 64 TiB.
    static let maximumCapacity = maximumSegments * maximumSegmentSize

    /// Bytes that the directory may occupy; at least ``minimumCapacity``, at most ``maximumCapacity``.
    let capacity: Int
    /// The size of a segment's file in bytes, including its table.
    let segmentSize: Int
    /// The longest body inside a record; a longer one has a blob file.
    let inlineLimit: Int
    /// The longest record; an entry that cannot be written within it is too large.
    let recordLimit: Int

    /// How many segments a store has at most for long. More than full ones take can only be nearly empty, and each is an open file.
    var usualSegments: Int { capacity / segmentSize + 8 }

    /// The geometry of a new store of `capacity` bytes.
    ///
    /// Segments are a 256th of the capacity, but at least 1 MiB; a 16th below 16 MiB.
    init(capacity: Int) {
        let capacity = min(max(capacity, Self.minimumCapacity), Self.maximumCapacity)
        let mebibyte = 1 << 20
        let size = capacity < 16 * mebibyte ? capacity / 16 : max(capacity / 256, mebibyte)
        self.init(capacity: capacity, segmentSize: size)
    }

    /// The geometry of a store whose segments have the size in its FORMAT, rounded down to whole pages.
    init(capacity: Int, segmentSize: Int) {
        self.capacity = min(max(capacity, Self.minimumCapacity), Self.maximumCapacity)
        self.segmentSize =
            min(max(segmentSize, Self.minimumSegmentSize), Self.maximumSegmentSize) / Self.page * Self.page
        inlineLimit = min(128 << 10, self.segmentSize / 8)
        recordLimit = min(Self.maximumRecord, self.segmentSize / 2)
    }
}

/// The parts of a blob's file: up to 65,520 stored bytes each, followed by a trailer of 16.
///
/// Chunk `i` begins at `i * 65,536`. Every chunk except the last is full. The trailer follows the stored bytes directly:
/// ``BodySum`` (8 bytes), stored length (4), the number of the key that it is sealed with (4; 0: not sealed), which goes into the
/// seed of the sum.
enum BlobChunk {
    /// Bytes from the start of one chunk to the start of the next.
    static let stride = 65_536
    /// The most stored bytes of a chunk.
    static let payload = 65_520
    /// Bytes of the trailer.
    static let trailerSize = 16

    /// The trailer that follows the stored bytes of chunk `index` (from 0) of the blob of this number.
    static func trailer(for stored: ByteChunk, number: UInt64, index: Int, keyID: UInt32 = 0) -> [UInt8] {
        [UInt8](zeroed: trailerSize) { trailer in
            trailer.put(BodySum.of(stored, seed: seed(number, index: index, keyID: keyID)), at: 0)
            trailer.put(UInt32(clamping: stored.count), at: 8)
            trailer.put(keyID, at: 12)
        }
    }

    /// The number of stored bytes at the start of `chunk`, which includes its trailer; nil unless the trailer matches all of them.
    static func check(_ chunk: UnsafeRawBufferPointer, number: UInt64, index: Int) -> Int? {
        let count = chunk.count - trailerSize
        guard count >= 1, count <= payload,
            chunk.number(at: count + 8) == UInt32(clamping: count),
            chunk.number(at: count)
                == BodySum.of(
                    chunk.part(0..<count),
                    seed: seed(number, index: index, keyID: chunk.number(at: count + 12))
                )
        else { return nil }
        return count
    }

    /// The size of the file of a blob with `plain` bytes of body, if each chunk holds `perChunk` of them and sealing adds
    /// `overhead`; the largest integer if the numbers are impossible.
    static func storedSize(plain: Int, perChunk: Int, overhead: Int) -> Int {
        guard plain > 0 else { return plain == 0 ? 0 : .max }
        guard perChunk >= 1, overhead >= 0, overhead <= payload, perChunk <= payload - overhead else { return .max }
        let last = plain % perChunk
        let (full, overflow) = (plain / perChunk).multipliedReportingOverflow(by: stride)
        let (size, overflows) = full.addingReportingOverflow(last == 0 ? 0 : last + overhead + trailerSize)
        return overflow || overflows ? .max : size
    }

    private static func seed(_ number: UInt64, index: Int, keyID: UInt32) -> UInt64 {
        (number &* 0x9E37_79B9_7F4A_7C15 &+ UInt64(truncatingIfNeeded: index)) ^ (UInt64(keyID) << 32)
    }
}

/// Numbers of the disk format in raw memory: little-endian, at any alignment.
///
/// None of these checks its bounds in a release build: the caller has compared the offset with the size before.
extension UnsafeRawBufferPointer {
    @inline(__always)
    func number<Number: FixedWidthInteger & BitwiseCopyable>(at offset: Int, as type: Number.Type = Number.self)
        -> Number
    {
        Number(littleEndian: loadUnaligned(fromByteOffset: offset, as: Number.self))
    }

    /// Whether all bytes of `range` are zero.
    func isZero(_ range: Range<Int>) -> Bool {
        self[range].allSatisfy { $0 == 0 }
    }

    /// The part of these bytes in `range`, which must be within them.
    @inline(__always)
    func part(_ range: Range<Int>) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: self[range])
    }
}

extension UnsafeMutableRawBufferPointer {
    @inline(__always)
    func put<Number: FixedWidthInteger & BitwiseCopyable>(_ number: Number, at offset: Int) {
        storeBytes(of: number.littleEndian, toByteOffset: offset, as: Number.self)
    }

    /// Copies `bytes` to `offset`; does nothing if there are none.
    @inline(__always)
    func put(_ bytes: UnsafeRawBufferPointer, at offset: Int) {
        guard !bytes.isEmpty else { return }
        UnsafeMutableRawBufferPointer(rebasing: self[offset...]).copyMemory(from: bytes)
    }
}

extension [UInt8] {
    /// An array of `count` zeroed bytes that `fill` writes in place.
    init(zeroed count: Int, _ fill: (UnsafeMutableRawBufferPointer) -> Void) {
        self.init(unsafeUninitializedCapacity: count) { buffer, filled in
            buffer.initialize(repeating: 0)
            fill(UnsafeMutableRawBufferPointer(buffer))
            filled = count
        }
    }
}
