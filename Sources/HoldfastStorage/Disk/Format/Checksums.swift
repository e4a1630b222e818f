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
/// Each step can be undone, so damage within one row always changes the sums, and so do two flipped bits of one block: they reach
/// `b` at different words. From one block to the next, `b` flows back into `a`; the shifts of the rows ensure that no difference in
/// `a` passes a block without one in `b`, and the signs ensure that no regular difference cancels out. The last step keeps two
/// different sets of sums apart, except with a probability of 1 in 2^64. Not guaranteed: damage to several rows of one block that
/// is chosen to fit (the first and third row, if they differ by p, -p, p, -p in runs of 16 bytes, may be exchanged undetected).
/// This is a check against accidents, not malice.
enum BodySum {
    private static let golden: UInt64 = 0x9E37_79B9_7F4A_7C15

    private static let blockSize = 320

    /// Two of the eight words of a row; a block works on four pairs, which stay in registers.
    private typealias Pair = SIMD2<UInt64>

    /// The sum of `bytes`; `seed` distinguishes equal bytes at different places.
    static func of(_ bytes: UnsafeRawBufferPointer, seed: UInt64) -> UInt64 {
        var sums = Sums(seed: seed)
        let whole = bytes.count / blockSize * blockSize
        var offset = 0
        while offset < whole {
            sums.takeBlock(bytes, offset: offset)
            offset &+= blockSize
        }
        if offset < bytes.count {
            withUnsafeTemporaryAllocation(byteCount: blockSize, alignment: 16) { last in
                last.initializeMemory(as: UInt8.self, repeating: 0)
                last.copyMemory(from: bytes.part(offset..<bytes.count))
                sums.takeBlock(UnsafeRawBufferPointer(last), offset: 0)
            }
        }
        return sums.finish(seed: seed &+ UInt64(truncatingIfNeeded: bytes.count))
    }

    /// The sum of a chunk.
    static func of(_ bytes: ByteChunk, seed: UInt64) -> UInt64 {
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
        mutating func takeBlock(_ bytes: UnsafeRawBufferPointer, offset: Int) {
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
            c0 &+= pair(bytes, offset: offset)
            b0 &+= c0
            c1 &+= pair(bytes, offset: offset &+ 16)
            b1 &+= c1
            c2 &+= pair(bytes, offset: offset &+ 32)
            b2 &+= c2
            c3 &+= pair(bytes, offset: offset &+ 48)
            b3 &+= c3
        }

        @inline(__always)
        private static func pair(_ bytes: UnsafeRawBufferPointer, offset: Int) -> Pair {
            let pair = bytes.loadUnaligned(fromByteOffset: offset, as: Pair.self)
            #if _endian(big)
                return Pair(pair.x.byteSwapped, pair.y.byteSwapped)
            #else
                return pair
            #endif
        }

        @inline(__always)
        private static func swapped(_ pair: Pair) -> Pair {
            // Written as a shuffle, this is one instruction; the compiler splits a rotation into single words.
            let halves = unsafeBitCast(pair, to: SIMD4<UInt32>.self)
            return unsafeBitCast(SIMD4(halves.y, halves.x, halves.w, halves.z), to: Pair.self)
        }

        @inline(__always)
        private func put(_ pair: Pair, offset: Int, words: UnsafeMutableRawBufferPointer) {
            words.put(pair.x, at: offset)
            words.put(pair.y, at: offset + 8)
        }

        @inline(__always)
        func finish(seed: UInt64) -> UInt64 {
            withUnsafeTemporaryAllocation(byteCount: 128, alignment: 16) { words in
                put(a0, offset: 0, words: words)
                put(a1, offset: 16, words: words)
                put(a2, offset: 32, words: words)
                put(a3, offset: 48, words: words)
                put(b0, offset: 64, words: words)
                put(b1, offset: 80, words: words)
                put(b2, offset: 96, words: words)
                put(b3, offset: 112, words: words)
                return HeadHash.of(UnsafeRawBufferPointer(words), seed: seed)
            }
        }
    }
}

/// A 64-bit hash for headers, metadata and keys: full-width products, 32 bytes a step in two lanes.
///
/// The value is part of the disk format and the same on every machine. It detects accidental damage; with a secret seed, it also
/// prevents anyone who chooses the keys from choosing their hashes. It is not a signature: anyone who may write to the directory
/// can make matching hashes.
///
/// With `fold(x, y)` = high half of the 128-bit product `x * y` xor its low half, all numbers 64 bits wide:
/// - `s = fold(seed ^ K0, K1)`, `t = fold(seed ^ K2, K3)`, `a = s ^ K2`, `b = t ^ K0`;
/// - each part is padded with zeros to a multiple of 32 bytes; for each 32 bytes, read as the words w0...w3:
///   `a = fold(w0 ^ a, w1 ^ s)`, `b = fold(w2 ^ b, w3 ^ t)`;
/// - with the number of bytes before padding as `n`: `h = fold(a ^ n ^ t, b ^ s)`, and the hash is `fold(h ^ K3, K1) ^ h`.
package enum HeadHash {
    /// `K0`...`K3`: fractions of square roots of small primes, made odd.
    static let constants: (UInt64, UInt64, UInt64, UInt64) = (
        0x6A09_E667_F3BC_C909, 0xBB67_AE85_84CA_A73B, 0x3C6E_F372_FE94_F82B, 0xA54F_F53A_5F1D_36F1
    )

    /// The hash of `bytes` followed by `more`; cost: about a nanosecond for ten bytes, no allocation.
    ///
    /// If the first part is not a multiple of 32 bytes long, it is padded before the second begins.
    static func of(_ bytes: UnsafeRawBufferPointer, more: UnsafeRawBufferPointer, seed: UInt64) -> UInt64 {
        var state = State(seed: seed)
        state.take(bytes)
        state.take(more)
        return state.finish()
    }

    /// The hash of `bytes`.
    package static func of(_ bytes: UnsafeRawBufferPointer, seed: UInt64) -> UInt64 {
        var state = State(seed: seed)
        state.take(bytes)
        return state.finish()
    }

    /// The hash of an array.
    static func of(_ bytes: [UInt8], seed: UInt64) -> UInt64 {
        bytes.withUnsafeBytes { of($0, seed: seed) }
    }

    /// The two halves of the product of `left` and `right`, combined.
    @inline(__always)
    static func fold(_ left: UInt64, _ right: UInt64) -> UInt64 {
        let product = left.multipliedFullWidth(by: right)
        return product.high ^ product.low
    }

    private struct State {
        private let first: UInt64
        private let second: UInt64
        private var left: UInt64
        private var right: UInt64
        private var count: UInt64 = 0

        @inline(__always)
        init(seed: UInt64) {
            first = fold(seed ^ constants.0, constants.1)
            second = fold(seed ^ constants.2, constants.3)
            left = first ^ constants.2
            right = second ^ constants.0
        }

        @inline(__always)
        mutating func take(_ bytes: UnsafeRawBufferPointer) {
            count &+= UInt64(truncatingIfNeeded: bytes.count)
            var offset = 0
            while bytes.count - offset >= 32 {
                takeRow(
                    bytes.number(at: offset),
                    word1: bytes.number(at: offset + 8),
                    word2: bytes.number(at: offset + 16),
                    word3: bytes.number(at: offset + 24)
                )
                offset += 32
            }
            guard offset < bytes.count else { return }
            takeRow(
                Self.padded(bytes, offset: offset),
                word1: Self.padded(bytes, offset: offset + 8),
                word2: Self.padded(bytes, offset: offset + 16),
                word3: Self.padded(bytes, offset: offset + 24)
            )
        }

        @inline(__always)
        private mutating func takeRow(_ word0: UInt64, word1: UInt64, word2: UInt64, word3: UInt64) {
            left = fold(word0 ^ left, word1 ^ first)
            right = fold(word2 ^ right, word3 ^ second)
        }

        /// The word at `offset`, with zeros for bytes past the end.
        @inline(__always)
        private static func padded(_ bytes: UnsafeRawBufferPointer, offset: Int) -> UInt64 {
            if offset + 8 <= bytes.count { return bytes.number(at: offset) }
            var word: UInt64 = 0
            var place = bytes.count
            while place > offset {
                place -= 1
                word = word << 8 | UInt64(bytes[place])
            }
            return word
        }

        @inline(__always)
        func finish() -> UInt64 {
            let mixed = fold(left ^ count ^ second, right ^ first)
            return fold(mixed ^ constants.3, constants.1) ^ mixed
        }
    }
}

/// The hashes under which a store files its keys and tags.
///
/// A hash only finds the place: code that finds an entry by it compares the whole key. The seed is derived from the directory's
/// secret, so that nobody outside can choose keys with equal hashes.
struct KeyHashing: Sendable {
    /// The seed, ``StoreFormat/hashSeed`` of the directory.
    let seed: UInt64

    /// The bits of a primary key's hash that the index keeps: six that choose a shard, and the low 43.
    static let primaryMask: UInt64 = 0xFC00_07FF_FFFF_FFFF

    /// The hash of a primary key, with bits 43 to 57 cleared.
    func primary(_ key: StoreKey) -> UInt64 {
        HeadHash.of(key.bytes, seed: seed) & Self.primaryMask
    }

    /// The hash of a variant under its primary key, including the bits that ``primary(_:)`` omits: so two keys with equal primary
    /// hashes are still distinguished.
    func variant(_ variant: StoreKey, of key: StoreKey) -> UInt32 {
        let rest = HeadHash.of(key.bytes, seed: seed) >> 43 & 0x7FFF
        return UInt32(truncatingIfNeeded: HeadHash.of(variant.bytes, seed: seed) ^ rest)
    }

    /// The hash of a tag, over its UTF-8 bytes as given, without normalization.
    func tag(_ tag: String) -> UInt64 {
        var tag = tag
        return tag.withUTF8 { HeadHash.of(UnsafeRawBufferPointer($0), seed: seed &+ 1) }
    }
}
