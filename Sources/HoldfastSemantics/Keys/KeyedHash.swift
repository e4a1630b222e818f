// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// A SHA-256 digest (RFC 6234), for keys that must be equal on every system and for keyed digests of credentials.
///
/// Implemented here because this module imports nothing. It is for short inputs, keys and field values, and does not promise
/// constant time.
package struct SHA256Digest: Sendable, Hashable, CustomStringConvertible {
    /// The 32 bytes.
    package let bytes: [UInt8]

    /// Hashes a message; linear time.
    package init(hashing message: [UInt8]) { bytes = SHA256Digest.hash(message[...], after: []) }

    /// Computes HMAC-SHA256 (RFC 2104).
    ///
    /// - Parameters:
    ///   - message: the message to authenticate.
    ///   - key: the secret, of any length.
    package init(authenticating message: [UInt8], key: [UInt8]) {
        var block = key.count > SHA256Digest.blockSize ? SHA256Digest(hashing: key).bytes : key
        block += [UInt8](repeating: 0, count: SHA256Digest.blockSize - block.count)
        let inner = SHA256Digest.hash(message[...], after: block.map { $0 ^ 0x36 })
        bytes = SHA256Digest.hash(inner[...], after: block.map { $0 ^ 0x5C })
    }

    /// The digest as 64 lower-case hexadecimal digits.
    package var hex: String { SHA256Digest.hex(bytes) }

    /// The digest as hexadecimal digits.
    package var description: String { hex }

    static func hex(_ bytes: some Sequence<UInt8>) -> String {
        let digits = Array("0123456789abcdef".utf8)
        var text: [UInt8] = []
        for byte in bytes {
            text.append(digits[Int(byte >> 4)])
            text.append(digits[Int(byte & 15)])
        }
        return String(decoding: text, as: UTF8.self)
    }
}

extension SHA256Digest {
    private static let blockSize = 64

    private static let initialState: [UInt32] = [
        0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a, 0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19,
    ]

    private static let constants: [UInt32] = [
        0x428a_2f98, 0x7137_4491, 0xb5c0_fbcf, 0xe9b5_dba5, 0x3956_c25b, 0x59f1_11f1, 0x923f_82a4, 0xab1c_5ed5,
        0xd807_aa98, 0x1283_5b01, 0x2431_85be, 0x550c_7dc3, 0x72be_5d74, 0x80de_b1fe, 0x9bdc_06a7, 0xc19b_f174,
        0xe49b_69c1, 0xefbe_4786, 0x0fc1_9dc6, 0x240c_a1cc, 0x2de9_2c6f, 0x4a74_84aa, 0x5cb0_a9dc, 0x76f9_88da,
        0x983e_5152, 0xa831_c66d, 0xb003_27c8, 0xbf59_7fc7, 0xc6e0_0bf3, 0xd5a7_9147, 0x06ca_6351, 0x1429_2967,
        0x27b7_0a85, 0x2e1b_2138, 0x4d2c_6dfc, 0x5338_0d13, 0x650a_7354, 0x766a_0abb, 0x81c2_c92e, 0x9272_2c85,
        0xa2bf_e8a1, 0xa81a_664b, 0xc24b_8b70, 0xc76c_51a3, 0xd192_e819, 0xd699_0624, 0xf40e_3585, 0x106a_a070,
        0x19a4_c116, 0x1e37_6c08, 0x2748_774c, 0x34b0_bcb5, 0x391c_0cb3, 0x4ed8_aa4a, 0x5b9c_ca4f, 0x682e_6ff3,
        0x748f_82ee, 0x78a5_636f, 0x84c8_7814, 0x8cc7_0208, 0x90be_fffa, 0xa450_6ceb, 0xbef9_a3f7, 0xc671_78f2,
    ]

    /// Hashes `prefix` (whole blocks or nothing) followed by the message.
    private static func hash(_ message: ArraySlice<UInt8>, after prefix: [UInt8]) -> [UInt8] {
        var padded = prefix
        padded.reserveCapacity(prefix.count + message.count + 2 * blockSize)
        padded += message
        let bitCount = UInt64(padded.count) &* 8
        padded.append(0x80)
        let rest = (padded.count + 8) % blockSize
        if rest > 0 { padded += repeatElement(0, count: blockSize - rest) }
        for shift in stride(from: UInt64(56), through: 0, by: -8) {
            padded.append(UInt8(truncatingIfNeeded: bitCount >> shift))
        }
        var state = initialState
        var schedule = [UInt32](repeating: 0, count: 64)
        let constants = constants
        for start in stride(from: 0, to: padded.count, by: blockSize) {
            fill(&schedule, from: padded, at: start)
            compress(schedule, constants: constants, into: &state)
        }
        var digest: [UInt8] = []
        digest.reserveCapacity(32)
        for word in state {
            digest.append(UInt8(truncatingIfNeeded: word >> 24))
            digest.append(UInt8(truncatingIfNeeded: word >> 16))
            digest.append(UInt8(truncatingIfNeeded: word >> 8))
            digest.append(UInt8(truncatingIfNeeded: word))
        }
        return digest
    }

    private static func rotate(_ word: UInt32, by count: UInt32) -> UInt32 {
        word &>> count | word &<< (32 &- count)
    }

    private static func fill(_ schedule: inout [UInt32], from bytes: [UInt8], at start: Int) {
        for word in 0..<16 {
            let index = start + word * 4
            schedule[word] =
                UInt32(bytes[index]) << 24 | UInt32(bytes[index + 1]) << 16
                | UInt32(bytes[index + 2]) << 8 | UInt32(bytes[index + 3])
        }
        for word in 16..<64 {
            let early = schedule[word - 15]
            let late = schedule[word - 2]
            let small = rotate(early, by: 7) ^ rotate(early, by: 18) ^ early >> 3
            let large = rotate(late, by: 17) ^ rotate(late, by: 19) ^ late >> 10
            schedule[word] = schedule[word - 16] &+ small &+ schedule[word - 7] &+ large
        }
    }

    private static func compress(_ schedule: [UInt32], constants: [UInt32], into state: inout [UInt32]) {
        var (a, b, c, d) = (state[0], state[1], state[2], state[3])
        var (e, f, g, h) = (state[4], state[5], state[6], state[7])
        for round in 0..<64 {
            let choice = (e & f) ^ (~e & g)
            let majority = (a & b) ^ (a & c) ^ (b & c)
            let sumE = rotate(e, by: 6) ^ rotate(e, by: 11) ^ rotate(e, by: 25)
            let sumA = rotate(a, by: 2) ^ rotate(a, by: 13) ^ rotate(a, by: 22)
            let first = h &+ sumE &+ choice &+ constants[round] &+ schedule[round]
            (h, g, f, e) = (g, f, e, d &+ first)
            (d, c, b, a) = (c, b, a, first &+ sumA &+ majority)
        }
        state[0] &+= a
        state[1] &+= b
        state[2] &+= c
        state[3] &+= d
        state[4] &+= e
        state[5] &+= f
        state[6] &+= g
        state[7] &+= h
    }
}

/// SipHash-2-4 (Aumasson and Bernstein 2012): a hash that reveals nothing about its input without the key.
package struct KeyedHash: Sendable {
    private let keys: (UInt64, UInt64)

    /// - Parameter keys: the secret.
    package init(keys: (UInt64, UInt64)) { self.keys = keys }

    /// The 64-bit hash of these bytes; about two nanoseconds per byte, no allocation.
    package func of(_ bytes: UnsafeRawBufferPointer) -> UInt64 {
        var state = State(keys)
        state.take(bytes)
        return state.finish()
    }

    /// The 64-bit hash of these bytes.
    package func of(_ bytes: [UInt8]) -> UInt64 { bytes.withUnsafeBytes { of($0) } }

    /// The 64-bit hash of some numbers, each as eight bytes.
    package func of(_ first: UInt64, _ second: UInt64, _ third: UInt64) -> UInt64 {
        var state = State(keys)
        state.take(first)
        state.take(second)
        state.take(third)
        state.take(24 << 56)
        return state.finish()
    }

    /// The 128-bit hash of these bytes.
    package func wide(of bytes: UnsafeRawBufferPointer) -> Wide {
        var state = State(keys, isWide: true)
        state.take(bytes)
        return state.finishWide()
    }

    /// The 128-bit hash of some texts, each of which may be missing; no two lists are hashed as the same bytes. Does not allocate.
    package func wide(of first: String?, _ second: String?, _ third: String?) -> Wide {
        var state = State(keys, isWide: true)
        state.take(first)
        state.take(second)
        state.take(third)
        return state.finishWide()
    }

    /// A hash of 128 bits: two inputs with the same one are not to be expected, nor to be found without the key.
    package struct Wide: Sendable, Hashable {
        package let high: UInt64
        package let low: UInt64
    }

    private struct State {
        private var (v0, v1, v2, v3): (UInt64, UInt64, UInt64, UInt64)

        init(_ keys: (UInt64, UInt64), isWide: Bool = false) {
            v0 = keys.0 ^ 0x736F_6D65_7073_6575
            v1 = keys.1 ^ 0x646F_7261_6E64_6F6D
            v2 = keys.0 ^ 0x6C79_6765_6E65_7261
            v3 = keys.1 ^ 0x7465_6462_7974_6573
            if isWide { v1 ^= 0xEE }
        }

        @inline(__always)
        mutating func take(_ word: UInt64) {
            v3 ^= word
            round()
            round()
            v0 ^= word
        }

        /// Takes bytes and their count, as the end of the input.
        mutating func take(_ bytes: UnsafeRawBufferPointer) {
            var offset = 0
            while bytes.count - offset >= 8 {
                take(UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self)))
                offset += 8
            }
            var last = UInt64(truncatingIfNeeded: bytes.count) << 56
            for place in offset..<bytes.count { last |= UInt64(bytes[place]) << UInt64((place - offset) * 8) }
            take(last)
        }

        /// Takes a text after its length, so that another one may follow.
        mutating func take(_ text: String?) {
            guard var text else { return take(UInt64.max) }
            text.withUTF8 { bytes in
                take(UInt64(bytes.count))
                take(UnsafeRawBufferPointer(bytes))
            }
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
            return mixed()
        }

        mutating func finishWide() -> Wide {
            v2 ^= 0xEE
            let first = mixed()
            v1 ^= 0xDD
            return Wide(high: first, low: mixed())
        }

        private mutating func mixed() -> UInt64 {
            for _ in 0..<4 { round() }
            return v0 ^ v1 ^ v2 ^ v3
        }
    }
}
