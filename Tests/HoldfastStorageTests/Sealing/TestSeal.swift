// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastStorage
import HoldfastTesting
import Synchronization

/// A seal that keeps the port's promises without a crypto library, and without being safe: for tests alone.
final class TestSeal: StoreSeal {
    let keyID: UInt32
    let overhead = 16
    private let keys: [UInt32: UInt64]
    private let lastNonce = Atomic<UInt64>(0)
    private let counts = Mutex((sealed: 0, opened: 0))

    /// How many pieces were sealed and opened.
    var pieces: (sealed: Int, opened: Int) { counts.withLock { $0 } }

    init(_ keyID: UInt32, keys: [UInt32: UInt64]) {
        self.keyID = keyID
        self.keys = keys
    }

    convenience init(_ keyID: UInt32 = 7, key: UInt64 = 0x5EA1) {
        self.init(keyID, keys: [keyID: key])
    }

    func seal(_ bytes: ByteChunk, context: [UInt8]) throws(StoreError) -> [UInt8] {
        counts.withLock { $0.sealed += 1 }
        let key = try key(keyID)
        let nonce = lastNonce.add(1, ordering: .relaxed).newValue
        let hidden = TestSeal.hide(bytes.array, key, nonce)
        return TestSeal.bytes(of: nonce) + hidden + TestSeal.bytes(of: TestSeal.tag(hidden, key, nonce, context))
    }

    func open(_ bytes: ByteChunk, keyID: UInt32, context: [UInt8]) throws(StoreError) -> [UInt8] {
        counts.withLock { $0.opened += 1 }
        let key = try key(keyID)
        guard bytes.count >= overhead else { throw TestSeal.corrupt }
        let nonce = bytes[0..<8].array.reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        let hidden = bytes[8..<bytes.count - 8].array
        let tag = TestSeal.bytes(of: TestSeal.tag(hidden, key, nonce, context))
        guard bytes[bytes.count - 8..<bytes.count].elementsEqual(tag) else { throw TestSeal.corrupt }
        return TestSeal.hide(hidden, key, nonce)
    }

    private func key(_ id: UInt32) throws(StoreError) -> UInt64 {
        guard let key = keys[id] else {
            throw StoreError(.sealed, "The test has no key \(id); give it to the seal.")
        }
        return key
    }

    private static let corrupt = StoreError(.corrupt, "The bytes are not what the test sealed; they count as damage.")

    private static func hide(_ bytes: [UInt8], _ key: UInt64, _ nonce: UInt64) -> [UInt8] {
        var stream = SeededGenerator(seed: key ^ (nonce &* 0x9E37_79B9_7F4A_7C15))
        return bytes.map { $0 ^ UInt8(truncatingIfNeeded: stream.next()) }
    }

    private static func tag(_ hidden: [UInt8], _ key: UInt64, _ nonce: UInt64, _ context: [UInt8]) -> UInt64 {
        var tag = key &+ nonce &+ UInt64(context.count) << 32
        for byte in context + hidden {
            let product = (tag ^ UInt64(byte)).multipliedFullWidth(by: 0xA24B_AED4_963E_E407)
            tag = (product.high ^ product.low) &+ 1
        }
        return tag
    }

    private static func bytes(of number: UInt64) -> [UInt8] {
        (0..<8).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
    }
}
