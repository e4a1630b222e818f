// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if canImport(CryptoKit) || Crypto
    public import HoldfastStorage

    #if canImport(CryptoKit)
        internal import CryptoKit
    #else
        internal import Crypto
    #endif

    /// A 256-bit key, and the number that a store's records refer to it by.
    ///
    /// The key is never printed: description, dump and mirror show only the number. The library keeps it in memory that is
    /// cleared when the last copy is gone; the caller has to clear the bytes it was made from.
    public struct SealingKey: Sendable {
        /// How many bytes a key has.
        public static let byteCount = 32

        /// The number; never 0. Records contain it unencrypted.
        public let id: UInt32

        let symmetricKey: SymmetricKey

        /// Creates a key from existing bytes, such as from ``random(id:)`` or `openssl rand`, that are kept where secrets are
        /// kept.
        ///
        /// The bytes are used as they are. They must be random; a password is not a key.
        ///
        /// - Parameters:
        ///   - id: a number other than 0 that no other key of the store has had.
        ///   - bytes: exactly 32 bytes.
        /// - Throws: `.badConfiguration` for another number of bytes, or for the id 0.
        public init(id: UInt32, bytes: some Sequence<UInt8>) throws(StoreError) {
            // Not an array of the sequence, which may grow and leave parts of the key behind.
            var copy = [UInt8](repeating: 0, count: SealingKey.byteCount)
            defer { for index in copy.indices { copy[index] = 0 } }
            var count = 0
            for byte in bytes {
                if count < copy.count { copy[count] = byte }
                count += 1
            }
            guard count == copy.count else {
                throw StoreError(
                    .badConfiguration,
                    "A sealing key has \(copy.count) bytes, not \(count); make one with a random generator."
                )
            }
            try self.init(id: id, symmetricKey: SymmetricKey(data: copy))
        }

        /// Creates a new key with the system's random generator: for a store whose entries need not outlive the process, and
        /// for making the first key.
        ///
        /// - Throws: `.badConfiguration` for the id 0.
        public static func random(id: UInt32) throws(StoreError) -> SealingKey {
            try SealingKey(id: id, symmetricKey: SymmetricKey(size: .bits256))
        }

        private init(id: UInt32, symmetricKey: SymmetricKey) throws(StoreError) {
            guard id != 0 else {
                throw StoreError(.badConfiguration, "The key id 0 means that nothing is sealed. Number keys from 1.")
            }
            self.id = id
            self.symmetricKey = symmetricKey
        }

        /// Calls `body` with the bytes, to save a new key; they must not be used after the call.
        public func withUnsafeBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
            try symmetricKey.withUnsafeBytes(body)
        }
    }

    extension SealingKey: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
        public var description: String { "key \(id) (hidden)" }
        public var debugDescription: String { description }
        public var customMirror: Mirror { Mirror(self, children: ["id": id]) }
    }
#else
    /// A 256-bit key and its number; needs the package trait `Crypto` on this system.
    @available(*, unavailable, message: "Build with the package trait 'Crypto', as in: swift build --traits Crypto")
    public struct SealingKey: Sendable {}
#endif
