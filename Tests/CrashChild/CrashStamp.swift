// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastStorage
internal import HoldfastTesting

#if canImport(Darwin)
    internal import Darwin
#elseif canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#endif

/// A primary key and a variant below it, as words without spaces.
struct CrashIdentity: Hashable, Sendable, CustomStringConvertible {
    let key: String
    let variant: String

    var description: String { "\(key)/\(variant)" }
    var storeKey: StoreKey { StoreKey(Array(key.utf8)) }
    var storeVariant: StoreKey { StoreKey(Array(variant.utf8)) }

    static let workers = 3
    static let keysPerWorker = 5
    static let variants = ["v0", "v1"]

    /// The keys that one worker changes and no other.
    static func keys(of worker: Int) -> [String] {
        (0..<keysPerWorker).map { "w\(worker)k\($0)" }
    }

    /// All that a run may write.
    static let all = (0..<workers).flatMap { worker in
        keys(of: worker).flatMap { key in variants.map { CrashIdentity(key: key, variant: $0) } }
    }
}

/// What an entry's metadata says, so that anyone who finds it knows which write it is and what its body must be.
struct CrashStamp: Hashable, Sendable, CustomStringConvertible {
    /// The put that wrote the body; used once.
    let put: UInt64
    /// The freshening that wrote the metadata; 0: none since the put.
    var freshening: UInt64 = 0
    let length: Int
    var tags: Set<String>

    var description: String {
        "\(put).\(freshening).\(length).\(tags.isEmpty ? "-" : tags.sorted().joined())"
    }

    init(put: UInt64, length: Int, tags: Set<String>) {
        self.put = put
        self.length = length
        self.tags = tags
    }

    init?(_ text: some StringProtocol) {
        let parts = String(text).split(separator: ".")
        guard parts.count == 4, let put = UInt64(parts[0]), let freshening = UInt64(parts[1]),
            let length = Int(parts[2])
        else { return nil }
        self.put = put
        self.freshening = freshening
        self.length = length
        tags = parts[3] == "-" ? [] : Set(parts[3].map(String.init))
    }

    init?(_ description: EntryDescription) {
        self.init(String(decoding: description.metadata, as: UTF8.self))
    }

    var entryDescription: EntryDescription {
        EntryDescription(metadata: ByteChunk(copying: description.utf8), tags: tags)
    }

    /// The body that belongs to this write under this name.
    ///
    /// It repeats with a prime period, so that no byte can stand in for another at any distance that a file format knows.
    func body(of identity: CrashIdentity) -> [UInt8] {
        var seed = put &* 0x9E37_79B9
        for byte in identity.description.utf8 { seed = (seed ^ UInt64(byte)) &* 0x100_0000_01B3 }
        var generator = SeededGenerator(seed: seed)
        var unit: [UInt8] = []
        unit.reserveCapacity(4_096)
        for _ in 0..<512 { withUnsafeBytes(of: generator.next()) { unit += $0 } }
        unit.removeLast(3)
        var body: [UInt8] = []
        body.reserveCapacity(length + unit.count)
        while body.count < length { body += unit }
        body.removeLast(body.count - length)
        return body
    }
}

/// Whether two runs of bytes are the same; at the speed of the C library in unoptimised builds too.
func areSame(_ left: [UInt8], _ right: [UInt8]) -> Bool {
    guard left.count == right.count else { return false }
    return left.withUnsafeBytes { left in
        right.withUnsafeBytes { right in
            guard let first = left.baseAddress, let second = right.baseAddress else { return true }
            return memcmp(first, second, left.count) == 0
        }
    }
}
