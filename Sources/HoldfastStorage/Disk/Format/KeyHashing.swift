// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The hashes under which a store files its keys and tags.
///
/// A hash only finds the place: whoever finds an entry by it compares the whole key. The seed is derived from the
/// directory's secret, so that nobody outside can choose keys whose hashes meet.
struct KeyHashing: Sendable {
    /// The seed, ``StoreFormat/hashSeed`` of the directory.
    let seed: UInt64

    /// The bits of a primary key's hash that the index keeps: six that choose a shard, and the low 32.
    static let primaryMask: UInt64 = 0xFC00_0000_FFFF_FFFF

    /// The hash of a primary key, with bits 32 to 57 cleared.
    func primary(_ key: StoreKey) -> UInt64 {
        HeadHash.of(key.bytes, seed: seed) & Self.primaryMask
    }

    /// The hash of a variant beneath its primary key, into which the bits go that ``primary(_:)`` leaves out: so two keys
    /// that meet in the one are still told apart.
    func variant(_ variant: StoreKey, of key: StoreKey) -> UInt32 {
        let rest = HeadHash.of(key.bytes, seed: seed) >> 32 & 0x03FF_FFFF
        return UInt32(truncatingIfNeeded: HeadHash.of(variant.bytes, seed: seed) ^ rest)
    }

    /// The hash of a tag, over its UTF-8 bytes as they are given: no normal form is made of them.
    func tag(_ tag: String) -> UInt64 {
        var tag = tag
        return tag.withUTF8 { HeadHash.of(UnsafeRawBufferPointer($0), seed: seed &+ 1) }
    }
}
