// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Encrypts what a store writes to a device, and authenticates what it reads back.
///
/// **Choose.** `AEADSeal` of the module HoldfastCrypto, unless the keys are in a device that encrypts itself.
/// **Use.** Pass it to a store when you open it. Without one, the store does not encrypt.
/// **Implement.** Keep these promises:
///
/// - Sealing equal bytes twice gives different results: each call uses a nonce that was never used with this key.
/// - ``open(_:keyID:context:)`` returns exactly what was sealed under the same key id and context, or throws. It never returns
///   bytes that were not authenticated, and never traps, whatever the bytes are.
/// - Both are synchronous, and called from any thread, many at a time, usually with at most a megabyte of bytes. They neither wait
///   nor call the store.
public protocol StoreSeal: Sendable {
    /// The number of the key that ``seal(_:context:)`` uses; never 0, which marks bytes that are not sealed.
    ///
    /// It stays the same for as long as the seal is in use, and always means the same key.
    var keyID: UInt32 { get }

    /// How many bytes sealing adds, for any key and any bytes; 0 or more, less than 4,096.
    var overhead: Int { get }

    /// Encrypts `bytes` with the current key.
    ///
    /// - Parameters:
    ///   - bytes: what to encrypt; may be empty.
    ///   - context: says what the bytes are and where they belong. It is authenticated but not stored: opening needs the same.
    /// - Returns: ``overhead`` bytes more than `bytes` has.
    /// - Throws: `.sealed` if the key cannot be used; the store then writes nothing.
    func seal(_ bytes: ByteChunk, context: [UInt8]) throws(StoreError) -> [UInt8]

    /// Decrypts the result of ``seal(_:context:)``.
    ///
    /// - Parameters:
    ///   - bytes: what was read from the device; it can be anything.
    ///   - keyID: the number of the key, as the store recorded it with the bytes.
    ///   - context: the context that the bytes were sealed with.
    /// - Throws: `.sealed` if the key is not known here: a miss, not damage. `.corrupt` if the bytes are not what was sealed under
    ///   this key and context.
    func open(_ bytes: ByteChunk, keyID: UInt32, context: [UInt8]) throws(StoreError) -> [UInt8]
}

/// The parts that a store passes to a ``StoreSeal``, and the context that binds the bytes to their place.
///
/// No two parts have the same context, so bytes that were moved do not open: a body under another entry's head, a chunk in place of
/// another one, a body that was cut off at the end of a chunk, or, by ``StoreFormat/binding(_:)``, a part of another store. A
/// record that reclaiming copies keeps its context.
///
/// An entry that gets a new order number (by freshening or pinning) is opened and sealed again, so it moves to the current key. A
/// blob stays as it is under its entry's newer records: its chunks are bound to the blob's own number, and their key's number is
/// stored beside each chunk, not taken from the record.
enum SealedPart {
    /// Key, variant, tags and metadata of an entry, bound to the length of its plain body and to its blob, if it has one; or the
    /// prefix of a mark.
    static func detail(of header: RecordHeader) -> [UInt8] {
        guard header.kind == .entry else { return frame(1, numbers: header.order) }
        let length = UInt64(clamping: header.bodyLength)
        return header.hasBlob
            ? frame(6, numbers: header.order, header.bodyWord, length) : frame(5, numbers: header.order, length)
    }

    /// A body that is in the record.
    static func body(order: UInt64) -> [UInt8] { frame(2, numbers: order) }

    /// A chunk of a blob.
    static func chunk(blob: UInt64, index: Int, isLast: Bool) -> [UInt8] {
        frame(isLast ? 4 : 3, numbers: blob, UInt64(clamping: index))
    }

    /// One byte for the kind, then the numbers, little-endian and of fixed length.
    private static func frame(_ kind: UInt8, numbers: UInt64...) -> [UInt8] {
        [kind] + numbers.flatMap { number in (0..<8).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) } }
    }
}

extension StoreFormat {
    /// The seal, bound to this store: what another store sealed with the same key does not open.
    func binding(_ seal: (any StoreSeal)?) -> (any StoreSeal)? {
        seal.map { BoundSeal(seal: $0, suffix: (0..<8).map { UInt8(truncatingIfNeeded: hashSeed >> (8 * $0)) }) }
    }
}

/// A seal that adds the same bytes to each context.
private struct BoundSeal: StoreSeal {
    let seal: any StoreSeal
    let suffix: [UInt8]

    var keyID: UInt32 { seal.keyID }
    var overhead: Int { seal.overhead }

    func seal(_ bytes: ByteChunk, context: [UInt8]) throws(StoreError) -> [UInt8] {
        try seal.seal(bytes, context: context + suffix)
    }

    func open(_ bytes: ByteChunk, keyID: UInt32, context: [UInt8]) throws(StoreError) -> [UInt8] {
        try seal.open(bytes, keyID: keyID, context: context + suffix)
    }
}
