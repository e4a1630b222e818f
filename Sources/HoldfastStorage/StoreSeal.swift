// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Encrypts what a store writes to a device, and authenticates what it reads back.
///
/// **Choose.** `AEADSeal` of the module HoldfastCrypto, unless the keys live in a device that does the work itself.
/// **Use.** Hand it to a store when it is opened. Without one the store writes in clear.
/// **Implement.** Keep these promises:
///
/// - Equal bytes sealed twice give unlike results: each call takes a nonce that this key has never had.
/// - ``open(_:keyID:context:)`` gives back exactly what was sealed under the same key id and the same context, or throws;
///   it never gives back bytes that were not authenticated, and never traps, whatever the bytes are.
/// - Both are synchronous, called from any thread, many at a time, with at most a megabyte of bytes as a rule. They neither
///   wait nor call the store.
public protocol StoreSeal: Sendable {
    /// The number of the key that ``seal(_:context:)`` uses; never 0, which marks what is not sealed.
    ///
    /// It stays the same for as long as the seal is in use, and always means the same key.
    var keyID: UInt32 { get }

    /// How many bytes sealing adds, whatever the key, the bytes and their number; 0 or more, less than 4,096.
    var overhead: Int { get }

    /// Encrypts `bytes` with the present key.
    ///
    /// - Parameters:
    ///   - bytes: what to hide; may be empty.
    ///   - context: tells what the bytes are and where they belong. It is authenticated and not kept: opening needs the same.
    /// - Returns: ``overhead`` bytes more than `bytes` has.
    /// - Throws: `.sealed` where the key cannot be used; the store then writes nothing.
    func seal(_ bytes: ByteChunk, context: [UInt8]) throws(StoreError) -> [UInt8]

    /// Decrypts what ``seal(_:context:)`` made.
    ///
    /// - Parameters:
    ///   - bytes: what came from the device; anything at all.
    ///   - keyID: the number of the key, as the store noted it beside the bytes.
    ///   - context: as it was when the bytes were sealed.
    /// - Throws: `.sealed` where the key is not known here: a miss, and no damage. `.corrupt` where the bytes are not what was
    ///   sealed under this key and context.
    func open(_ bytes: ByteChunk, keyID: UInt32, context: [UInt8]) throws(StoreError) -> [UInt8]
}

/// What a store hands to a ``StoreSeal``, and the context that ties the bytes to their place.
///
/// The context of no two parts is the same, so that bytes moved from one place to another do not open: neither a body beneath
/// another entry's head, nor a chunk in another chunk's stead, nor a body that was cut off at the end of a chunk. A copy that
/// reclaim makes of a record keeps its context.
///
/// What gets a new order number (a freshening, a pin) is opened and sealed anew, and so goes over to the present key. A blob
/// stays as it is under its entry's newer records: its chunks are tied to the blob's own number, and the number of their key
/// is noted beside each chunk, not taken from the record.
enum SealedPart: Sendable, Hashable {
    /// Key, variant, tags and metadata of an entry, or the prefix of a mark.
    ///
    /// `facts` are the bytes of the record's header that a copy keeps, so that none of them can be changed unseen; empty where
    /// the header is not bound.
    case detail(order: UInt64, facts: [UInt8] = [])
    /// A body that lies in the record.
    case body(order: UInt64)
    /// A chunk of a blob.
    case chunk(blob: UInt64, index: UInt64, isLast: Bool)

    /// One byte for the kind, then the numbers, little-endian and of fixed length, then the facts.
    var context: [UInt8] {
        switch self {
        case .detail(let order, let facts): SealedPart.frame(1, order) + facts
        case .body(let order): SealedPart.frame(2, order)
        case .chunk(let blob, let index, let isLast): SealedPart.frame(isLast ? 4 : 3, blob, index)
        }
    }

    private static func frame(_ kind: UInt8, _ numbers: UInt64...) -> [UInt8] {
        [kind] + numbers.flatMap { number in (0..<8).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) } }
    }
}
