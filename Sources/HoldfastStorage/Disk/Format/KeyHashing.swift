// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The hashes under which a store files its keys and tags.
///
/// A hash only finds the place: whoever finds an entry by it compares the whole key. The seed is derived from the
/// directory's secret, so that nobody outside can choose keys whose hashes meet.
struct KeyHashing: Sendable {
    /// The seed, ``StoreFormat/hashSeed`` of the directory.
    let seed: UInt64

    /// The hash of a primary key.
    func primary(_ key: StoreKey) -> UInt64 {
        HeadHash.of(key.bytes, seed: seed)
    }

    /// The hash of a variant key: the low half suffices beneath one primary key.
    func variant(_ key: StoreKey) -> UInt32 {
        UInt32(truncatingIfNeeded: HeadHash.of(key.bytes, seed: seed))
    }

    /// The hash of a tag, over its UTF-8 bytes as they are given: no normal form is made of them.
    func tag(_ tag: String) -> UInt64 {
        var tag = tag
        return tag.withUTF8 { HeadHash.of(UnsafeRawBufferPointer($0), seed: seed &+ 1) }
    }
}
