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
