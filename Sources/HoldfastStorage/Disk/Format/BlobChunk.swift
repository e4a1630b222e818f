// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The parts of a blob's file: up to 65,520 stored bytes each, followed by a trailer of 16.
///
/// Chunk `i` begins at `i * 65,536`. Every chunk but the last is full. The trailer follows the stored bytes at once:
/// ``BodySum`` (8 bytes), stored length (4), the number of the key it is sealed with (4; 0: not sealed), which goes into the
/// seed of the sum.
enum BlobChunk {
    /// Bytes from the start of one chunk to the start of the next.
    static let stride = 65_536
    /// The most stored bytes of a chunk.
    static let payload = 65_520
    /// Bytes of the trailer.
    static let trailerSize = 16

    /// The trailer that follows the stored bytes of chunk `index` (from 0) of the blob of this number.
    static func trailer(for stored: UnsafeRawBufferPointer, number: UInt64, index: Int, keyID: UInt32 = 0) -> [UInt8] {
        [UInt8](zeroed: trailerSize) { trailer in
            trailer.put(BodySum.of(stored, seed: seed(number, index, keyID)), at: 0)
            trailer.put(UInt32(clamping: stored.count), at: 8)
            trailer.put(keyID, at: 12)
        }
    }

    /// The trailer that follows the stored bytes of chunk `index` (from 0) of the blob of this number.
    static func trailer(for stored: ByteChunk, number: UInt64, index: Int, keyID: UInt32 = 0) -> [UInt8] {
        stored.withUnsafeBytes { trailer(for: $0, number: number, index: index, keyID: keyID) }
    }

    /// How many stored bytes `chunk`, read with its trailer, begins with; nil unless the trailer is right for them all.
    static func check(_ chunk: UnsafeRawBufferPointer, number: UInt64, index: Int) -> Int? {
        let count = chunk.count - trailerSize
        guard count >= 1, count <= payload,
            chunk.number(at: count + 8) == UInt32(clamping: count),
            chunk.number(at: count)
                == BodySum.of(chunk.part(0..<count), seed: seed(number, index, chunk.number(at: count + 12)))
        else { return nil }
        return count
    }

    /// How many stored bytes `chunk`, read with its trailer, begins with; nil unless the trailer is right for them all.
    static func check(_ chunk: ByteChunk, number: UInt64, index: Int) -> Int? {
        chunk.withUnsafeBytes { check($0, number: number, index: index) }
    }

    /// The size of the file of a blob with `plain` bytes of body, of which each chunk holds `perChunk` and adds `overhead`
    /// by sealing; the largest integer where the numbers are impossible.
    static func storedSize(plain: Int, perChunk: Int, overhead: Int) -> Int {
        guard plain > 0 else { return plain == 0 ? 0 : .max }
        guard perChunk >= 1, overhead >= 0, overhead <= payload, perChunk <= payload - overhead else { return .max }
        let last = plain % perChunk
        let (full, overflow) = (plain / perChunk).multipliedReportingOverflow(by: stride)
        let (size, overflows) = full.addingReportingOverflow(last == 0 ? 0 : last + overhead + trailerSize)
        return overflow || overflows ? .max : size
    }

    /// Where chunk `index` of such a blob lies in its file, trailer included; nil past the end or for impossible numbers.
    static func place(of index: Int, plain: Int, perChunk: Int, overhead: Int) -> Range<Int>? {
        let size = storedSize(plain: plain, perChunk: perChunk, overhead: overhead)
        guard index >= 0, size < .max, index <= size / stride, index * stride < size else { return nil }
        let start = index * stride
        return start..<(size - start > stride ? start + stride : size)
    }

    private static func seed(_ number: UInt64, _ index: Int, _ keyID: UInt32) -> UInt64 {
        (number &* 0x9E37_79B9_7F4A_7C15 &+ UInt64(truncatingIfNeeded: index)) ^ (UInt64(keyID) << 32)
    }
}
