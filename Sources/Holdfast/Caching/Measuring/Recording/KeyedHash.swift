// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// SipHash-2-4 (Aumasson and Bernstein 2012): a 64-bit hash that tells nothing of its input to who has not the key.
struct KeyedHash: Sendable {
    private let keys: (UInt64, UInt64)

    init(keys: (UInt64, UInt64)) {
        self.keys = keys
    }

    /// The hash of these bytes; two nanoseconds a byte or so, no allocation.
    func of(_ bytes: UnsafeRawBufferPointer) -> UInt64 {
        var state = State(keys)
        var offset = 0
        while bytes.count - offset >= 8 {
            state.take(UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self)))
            offset += 8
        }
        var last = UInt64(truncatingIfNeeded: bytes.count) << 56
        for place in offset..<bytes.count { last |= UInt64(bytes[place]) << UInt64((place - offset) * 8) }
        state.take(last)
        return state.finish()
    }

    func of(_ bytes: [UInt8]) -> UInt64 { bytes.withUnsafeBytes { of($0) } }

    /// The hash of some numbers, each as its eight bytes.
    func of(_ first: UInt64, _ second: UInt64, _ third: UInt64) -> UInt64 {
        var state = State(keys)
        state.take(first)
        state.take(second)
        state.take(third)
        state.take(24 << 56)
        return state.finish()
    }

    private struct State {
        private var (v0, v1, v2, v3): (UInt64, UInt64, UInt64, UInt64)

        init(_ keys: (UInt64, UInt64)) {
            v0 = keys.0 ^ 0x736F_6D65_7073_6575
            v1 = keys.1 ^ 0x646F_7261_6E64_6F6D
            v2 = keys.0 ^ 0x6C79_6765_6E65_7261
            v3 = keys.1 ^ 0x7465_6462_7974_6573
        }

        @inline(__always)
        mutating func take(_ word: UInt64) {
            v3 ^= word
            round()
            round()
            v0 ^= word
        }

        @inline(__always)
        private mutating func round() {
            v0 &+= v1
            v2 &+= v3
            v1 = (v1 << 13 | v1 >> 51) ^ v0
            v3 = (v3 << 16 | v3 >> 48) ^ v2
            v0 = v0 << 32 | v0 >> 32
            v2 &+= v1
            v0 &+= v3
            v1 = (v1 << 17 | v1 >> 47) ^ v2
            v3 = (v3 << 21 | v3 >> 43) ^ v0
            v2 = v2 << 32 | v2 >> 32
        }

        mutating func finish() -> UInt64 {
            v2 ^= 0xFF
            for _ in 0..<4 { round() }
            return v0 ^ v1 ^ v2 ^ v3
        }
    }
}
