// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import HoldfastStorage

#if canImport(Darwin)
    private import Darwin
#elseif canImport(Musl)
    private import Musl
#else
    private import Glibc
#endif

/// Bytes that are known by their position, so that a body of any length can be made and checked without being held.
///
/// They repeat after a prime number of bytes, so a block that is lost, doubled or moved shows, whatever size transfers are cut
/// into.
public enum TransferPattern {
    /// After how many bytes the pattern repeats.
    public static let period = 65_521

    /// The pattern twice over: whatever position is asked for, a whole period follows it without a break.
    private static let twice: [UInt8] = {
        var mixed: UInt32 = 0x9E37_79B9
        let once = (0..<period).map { _ in
            mixed ^= mixed << 13
            mixed ^= mixed >> 17
            mixed ^= mixed << 5
            return UInt8(truncatingIfNeeded: mixed >> 11)
        }
        return once + once
    }()

    /// `count` bytes of the pattern from `position` on; at most ``period`` of them.
    public static func bytes(_ count: Int, at position: Int) -> ByteChunk {
        let start = position % period
        return whole[start..<(start + min(count, period))]
    }

    private static let whole = ByteChunk(twice)

    /// Reads a body from its first byte on and says whether it is the pattern.
    public struct Checker: Sendable, Hashable {
        /// How many bytes were read.
        public private(set) var count = 0
        /// Whether each of them was right.
        public private(set) var isIntact = true

        /// A checker that has read nothing.
        public init() {}

        /// Reads the next bytes.
        public mutating func read(_ bytes: UnsafeRawBufferPointer) {
            var done = 0
            while done < bytes.count {
                let part = min(bytes.count - done, period)
                let start = (count + done) % period
                let isRight = twice.withUnsafeBytes { all in
                    let expected = all[start..<(start + part)]
                    return TransferPattern.areEqual(expected, bytes[(done + bytes.startIndex)..<(done + part)])
                }
                if !isRight { isIntact = false }
                done += part
            }
            count += bytes.count
        }

        /// Reads the next chunk.
        public mutating func read(_ chunk: ByteChunk) {
            chunk.withUnsafeBytes { read($0) }
        }
    }

    private static func areEqual(
        _ left: Slice<UnsafeRawBufferPointer>,
        _ right: Slice<UnsafeRawBufferPointer>
    ) -> Bool {
        let left = UnsafeRawBufferPointer(rebasing: left)
        let right = UnsafeRawBufferPointer(rebasing: right)
        guard let first = left.baseAddress, let second = right.baseAddress else { return left.isEmpty && right.isEmpty }
        return left.count == right.count && memcmp(first, second, left.count) == 0
    }
}
