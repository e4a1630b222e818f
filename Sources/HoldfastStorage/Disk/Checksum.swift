// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// A 64-bit checksum against damage by accident: any single flipped bit, torn or moved bytes.
///
/// Not against malice: who may write the directory may write a fitting checksum, too. Built on the full 64 by 64 bit
/// product, 32 bytes a step in two lanes; the value is part of the disk format and the same on every machine.
enum Checksum {
    private static let first: UInt64 = 0x8EBC_6AF0_9C88_C6E3
    private static let second: UInt64 = 0x5899_65CC_7537_4CC3
    private static let third: UInt64 = 0xE703_7ED1_A0B4_28DB
    private static let fourth: UInt64 = 0xA076_1D64_78BD_642F

    /// The checksum of `bytes`; `seed` tells apart equal bytes at different places.
    static func of(_ bytes: UnsafeRawBufferPointer, seed: UInt64) -> UInt64 {
        var one = mixed(seed ^ first, second)
        var two = mixed(seed ^ third, fourth)
        var offset = 0
        while bytes.count - offset >= 32 {
            one = mixed(word(bytes, offset) ^ one, word(bytes, offset + 8) ^ second) ^ one
            two = mixed(word(bytes, offset + 16) ^ two, word(bytes, offset + 24) ^ fourth) ^ two
            offset += 32
        }
        while bytes.count - offset >= 8 {
            one = mixed(word(bytes, offset) ^ one, second) ^ two
            swap(&one, &two)
            offset += 8
        }
        var rest: UInt64 = 0
        for place in offset..<bytes.count { rest = rest << 8 | UInt64(bytes[place]) }
        one = mixed(rest ^ one, third) ^ two
        return mixed(one ^ fourth, UInt64(bytes.count) ^ two ^ first)
    }

    /// The checksum of a chunk.
    static func of(_ bytes: ByteChunk, seed: UInt64) -> UInt64 {
        bytes.withUnsafeBytes { of($0, seed: seed) }
    }

    /// The checksum of an array.
    static func of(_ bytes: [UInt8], seed: UInt64) -> UInt64 {
        bytes.withUnsafeBytes { of($0, seed: seed) }
    }

    private static func word(_ bytes: UnsafeRawBufferPointer, _ offset: Int) -> UInt64 {
        UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
    }

    private static func mixed(_ left: UInt64, _ right: UInt64) -> UInt64 {
        let product = left.multipliedFullWidth(by: right)
        return product.high ^ product.low
    }
}
