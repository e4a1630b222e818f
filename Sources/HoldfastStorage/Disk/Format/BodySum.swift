// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// A 64-bit checksum for bodies at nearly the speed of a copy: two running sums over eight words at a time.
///
/// The value is part of the disk format and the same on every machine. The bytes are padded with zeros to a multiple of
/// 320 and read as little-endian 64-bit words, eight to a row and five rows to a block. All additions wrap. With the eight
/// sums `a[0...7]` and `b[0...7]`, `a[i] = seed + (i + 1) * G`, `b[i] = (i + 9) * G` at first:
/// - row `k` (0...4) of a block, for each word `i`: `j = (i + [0, 2, 4, 6, 2][k]) % 8`, `a[j] += word[i]`, `b[i] += a[j]`;
/// - after the five rows, for each `i`: `a[i] -= 2 * b[i] + (b[i] with its 32-bit halves exchanged)`;
/// - at the end: ``HeadHash`` over the words `a[0...7]`, `b[0...7]` (128 bytes), seed `seed + number of bytes`.
///
/// Each step can be undone, so damage confined to one row always changes the sums, and so do two flipped bits of one block:
/// they meet `b` at different words. From one block to the next `b` flows back into `a`; the shifts of the rows are such
/// that no difference in `a` passes a block without one in `b`, and the signs such that no regular difference comes back to
/// nothing. The last step keeps two different sets of sums apart but for one chance in 2^64. Not guaranteed: damage to
/// several rows of one block that is chosen to fit (the first and third row, where they differ by p, -p, p, -p in runs of
/// 16 bytes, may be exchanged unseen). This is a check against accidents, not malice.
enum BodySum {
    private static let golden: UInt64 = 0x9E37_79B9_7F4A_7C15

    private static let blockSize = 320

    /// Two of the eight words of a row; a block works on four of them, which stay in registers.
    private typealias Pair = SIMD2<UInt64>

    /// The sum of `bytes`; `seed` tells apart equal bytes at different places.
    static func of(_ bytes: UnsafeRawBufferPointer, seed: UInt64) -> UInt64 {
        var sums = Sums(seed: seed)
        let whole = bytes.count / blockSize * blockSize
        var offset = 0
        while offset < whole {
            sums.takeBlock(bytes, offset)
            offset &+= blockSize
        }
        if offset < bytes.count {
            withUnsafeTemporaryAllocation(byteCount: blockSize, alignment: 16) { last in
                last.initializeMemory(as: UInt8.self, repeating: 0)
                last.copyMemory(from: bytes.part(offset..<bytes.count))
                sums.takeBlock(UnsafeRawBufferPointer(last), 0)
            }
        }
        return sums.finish(seed: seed &+ UInt64(truncatingIfNeeded: bytes.count))
    }

    /// The sum of a chunk.
    static func of(_ bytes: ByteChunk, seed: UInt64) -> UInt64 {
        bytes.withUnsafeBytes { of($0, seed: seed) }
    }

    /// The sum of an array.
    static func of(_ bytes: [UInt8], seed: UInt64) -> UInt64 {
        bytes.withUnsafeBytes { of($0, seed: seed) }
    }

    private struct Sums {
        private var a0, a1, a2, a3: Pair
        private var b0, b1, b2, b3: Pair

        @inline(__always)
        init(seed: UInt64) {
            func pair(_ index: UInt64) -> Pair { Pair(index &* golden, (index &+ 1) &* golden) }
            let start = Pair(repeating: seed)
            (a0, a1, a2, a3) = (start &+ pair(1), start &+ pair(3), start &+ pair(5), start &+ pair(7))
            (b0, b1, b2, b3) = (pair(9), pair(11), pair(13), pair(15))
        }

        @inline(__always)
        mutating func takeBlock(_ bytes: UnsafeRawBufferPointer, _ offset: Int) {
            Self.takeRow(bytes, offset, &a0, &a1, &a2, &a3, &b0, &b1, &b2, &b3)
            Self.takeRow(bytes, offset &+ 64, &a1, &a2, &a3, &a0, &b0, &b1, &b2, &b3)
            Self.takeRow(bytes, offset &+ 128, &a2, &a3, &a0, &a1, &b0, &b1, &b2, &b3)
            Self.takeRow(bytes, offset &+ 192, &a3, &a0, &a1, &a2, &b0, &b1, &b2, &b3)
            Self.takeRow(bytes, offset &+ 256, &a1, &a2, &a3, &a0, &b0, &b1, &b2, &b3)
            a0 &-= b0 &+ b0 &+ Self.swapped(b0)
            a1 &-= b1 &+ b1 &+ Self.swapped(b1)
            a2 &-= b2 &+ b2 &+ Self.swapped(b2)
            a3 &-= b3 &+ b3 &+ Self.swapped(b3)
        }

        @inline(__always)
        private static func takeRow(
            _ bytes: UnsafeRawBufferPointer,
            _ offset: Int,
            _ c0: inout Pair,
            _ c1: inout Pair,
            _ c2: inout Pair,
            _ c3: inout Pair,
            _ b0: inout Pair,
            _ b1: inout Pair,
            _ b2: inout Pair,
            _ b3: inout Pair
        ) {
            c0 &+= pair(bytes, offset)
            b0 &+= c0
            c1 &+= pair(bytes, offset &+ 16)
            b1 &+= c1
            c2 &+= pair(bytes, offset &+ 32)
            b2 &+= c2
            c3 &+= pair(bytes, offset &+ 48)
            b3 &+= c3
        }

        @inline(__always)
        private static func pair(_ bytes: UnsafeRawBufferPointer, _ offset: Int) -> Pair {
            let pair = bytes.loadUnaligned(fromByteOffset: offset, as: Pair.self)
            #if _endian(big)
                return Pair(pair.x.byteSwapped, pair.y.byteSwapped)
            #else
                return pair
            #endif
        }

        @inline(__always)
        private static func swapped(_ pair: Pair) -> Pair {
            // Spelled as a shuffle, one instruction; the compiler takes a rotation apart word by word.
            let halves = unsafeBitCast(pair, to: SIMD4<UInt32>.self)
            return unsafeBitCast(SIMD4(halves.y, halves.x, halves.w, halves.z), to: Pair.self)
        }

        @inline(__always)
        private func put(_ pair: Pair, _ offset: Int, _ words: UnsafeMutableRawBufferPointer) {
            words.put(pair.x, at: offset)
            words.put(pair.y, at: offset + 8)
        }

        @inline(__always)
        func finish(seed: UInt64) -> UInt64 {
            withUnsafeTemporaryAllocation(byteCount: 128, alignment: 16) { words in
                put(a0, 0, words)
                put(a1, 16, words)
                put(a2, 32, words)
                put(a3, 48, words)
                put(b0, 64, words)
                put(b1, 80, words)
                put(b2, 96, words)
                put(b3, 112, words)
                return HeadHash.of(UnsafeRawBufferPointer(words), seed: seed)
            }
        }
    }
}
