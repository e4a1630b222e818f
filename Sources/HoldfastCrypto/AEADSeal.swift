// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if canImport(CryptoKit) || Crypto
    internal import Foundation
    public import HoldfastStorage

    #if canImport(CryptoKit)
        internal import CryptoKit
    #else
        internal import Crypto
    #endif

    /// Seals what a store writes by AES-256-GCM (NIST SP 800-38D), under keys that can be changed.
    ///
    /// New records are sealed with the current key; those that a retired key sealed stay readable until they are evicted. To
    /// change keys, open the store with the new one as current and the old one among the retired; drop the old one once it
    /// should not be known any more, and what is left under it becomes a miss.
    ///
    /// Each sealing takes a fresh nonce of 96 random bits from the library. Two of one key must never be the same, so a key
    /// may seal 2^32 parts (SP 800-38D §8.3): with two parts an entry and one for 64 KiB of a large body, that is two thousand
    /// million small entries or 256 TiB. Change the key before then; a key a year does for most.
    ///
    /// Costs 28 bytes a part. Safe to call from any thread, without a lock.
    public struct AEADSeal: StoreSeal {
        private static let nonceLength = 12
        private static let tagLength = 16

        private let current: SealingKey
        private let keys: [UInt32: SealingKey]

        public var keyID: UInt32 { current.id }
        public var overhead: Int { AEADSeal.nonceLength + AEADSeal.tagLength }

        /// A seal with these keys.
        ///
        /// - Parameters:
        ///   - current: seals what is written from now on.
        ///   - retired: only open what they sealed before; none by default.
        /// - Throws: `.badConfiguration` where two of the keys have one id.
        public init(current: SealingKey, retired: [SealingKey] = []) throws(StoreError) {
            var keys = [current.id: current]
            for key in retired {
                guard keys.updateValue(key, forKey: key.id) == nil else {
                    throw StoreError(
                        .badConfiguration,
                        "Two sealing keys have the id \(key.id); give each key an id that no other ever had."
                    )
                }
            }
            self.current = current
            self.keys = keys
        }

        public func seal(_ bytes: ByteChunk, context: [UInt8]) throws(StoreError) -> [UInt8] {
            do {
                return try bytes.withUnsafeBytes { plain in
                    let box = try AES.GCM.seal(plain, using: current.symmetricKey, authenticating: context)
                    var sealed: [UInt8] = []
                    sealed.reserveCapacity(plain.count + overhead)
                    box.nonce.withUnsafeBytes { sealed.append(contentsOf: $0) }
                    sealed.append(contentsOf: box.ciphertext)
                    sealed.append(contentsOf: box.tag)
                    return sealed
                }
            } catch {
                throw StoreError(.sealed, "The bytes could not be sealed; nothing is stored.", cause: error)
            }
        }

        public func open(_ bytes: ByteChunk, keyID: UInt32, context: [UInt8]) throws(StoreError) -> [UInt8] {
            guard let key = keys[keyID] else {
                throw StoreError(
                    .sealed,
                    "An entry is sealed with key \(keyID), which is not at hand; open the store with it among the retired."
                )
            }
            do {
                return try bytes.withUnsafeBytes { sealed in
                    let box = try AES.GCM.SealedBox(combined: sealed)
                    return Array(try AES.GCM.open(box, using: key.symmetricKey, authenticating: context))
                }
            } catch {
                throw StoreError(
                    .corrupt,
                    "A sealed part does not open with its key \(keyID): it was changed or moved, or the id now names another key.",
                    cause: error
                )
            }
        }
    }
#else
    /// Seals what a store writes; needs the package trait `Crypto` on this system.
    @available(*, unavailable, message: "Build with the package trait 'Crypto', as in: swift build --traits Crypto")
    public struct AEADSeal: Sendable {}
#endif
