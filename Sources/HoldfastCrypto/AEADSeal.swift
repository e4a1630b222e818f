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

    /// Encrypts what a store writes with AES-256-GCM (NIST SP 800-38D), with keys that can be changed.
    ///
    /// New records are sealed with the current key; those sealed with a retired key stay readable until they are evicted. To
    /// change keys, open the store with the new one as current and the old one among the retired. Remove the old one when it
    /// should no longer be known; the entries that still use it then become misses.
    ///
    /// Each sealing uses a fresh nonce of 96 random bits from the library. No two of one key may be the same, so a key may seal
    /// 2^32 parts (SP 800-38D §8.3). With two parts per entry, and one for 64 KiB of a large body, that is two thousand million
    /// small entries or 256 TiB. Change the key before that; for most programs, a new key every year is enough.
    ///
    /// Each part takes 28 extra bytes. Can be called from any thread, without a lock.
    public struct AEADSeal: StoreSeal {
        private static let nonceLength = 12
        private static let tagLength = 16

        private let current: SealingKey
        private let keys: [UInt32: SealingKey]

        public var keyID: UInt32 { current.id }
        public var overhead: Int { AEADSeal.nonceLength + AEADSeal.tagLength }

        /// Creates a seal with these keys.
        ///
        /// - Parameters:
        ///   - current: seals everything written from now on.
        ///   - retired: only open what they sealed before; none by default.
        /// - Throws: `.badConfiguration` if two of the keys have the same id.
        public init(current: SealingKey, retired: [SealingKey] = []) throws(StoreError) {
            var keys = [current.id: current]
            for key in retired {
                guard keys.updateValue(key, forKey: key.id) == nil else {
                    throw StoreError(
                        .badConfiguration,
                        "Two sealing keys have the id \(key.id). Give each key an id that no other key has ever had."
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
                throw StoreError(.sealed, "The bytes could not be sealed, so nothing was stored.", cause: error)
            }
        }

        public func open(_ bytes: ByteChunk, keyID: UInt32, context: [UInt8]) throws(StoreError) -> [UInt8] {
            guard let key = keys[keyID] else {
                throw StoreError(
                    .sealed,
                    "An entry is sealed with key \(keyID), which is missing. Open the store with it among the retired keys."
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
    /// Encrypts what a store writes; needs the package trait `Crypto` on this system.
    @available(*, unavailable, message: "Build with the package trait 'Crypto', as in: swift build --traits Crypto")
    public struct AEADSeal: Sendable {}
#endif
