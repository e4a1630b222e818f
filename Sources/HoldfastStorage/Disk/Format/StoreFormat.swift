// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The head of the file `FORMAT`: what must be known of a directory before any other of its files can be read.
///
/// 256 bytes, of which ``FormatFile`` holds two copies. Every number in it is a lower bound that may lag behind the segments.
struct StoreFormat: Sendable, Hashable {
    /// The version of the disk format that this code reads and writes.
    static let version: UInt32 = 3
    /// The size of a copy.
    static let size = 256
    /// The longest boot identity that is kept.
    static let bootIdentityLimit = 64

    private static let secretLength = 32
    /// `HOLDFAST`, the first bytes of the file in every version.
    static let magic: UInt64 = 0x5453_4146_444C_4F48
    private static let hashSeedSeed: UInt64 = 0x484F_4C44

    /// 32 random bytes from which ``hashSeed`` comes.
    var secret: [UInt8]
    /// Bytes of a segment's file.
    var segmentSize: Int
    /// Segments of a lower epoch are void: purging everything raises it.
    var epoch: UInt64
    /// Entries of an order below this must be revalidated before they are used.
    var suspectBefore: UInt64
    /// No order number at or above this was given out when the file was written; the segments may know higher ones.
    var nextOrder: UInt64
    /// Whether the store was closed and nothing was written since.
    var isClean: Bool
    /// What the system said of its last start when the file was written; empty where it says nothing, at most 64 bytes.
    var bootIdentity: [UInt8]
    /// How often the head was written: of two copies the one with the higher number is in force.
    var generation: UInt64 = 1

    /// The format of a new directory, in epoch 1, with a secret from `generator`.
    static func new(segmentSize: Int, using generator: inout some RandomNumberGenerator) -> StoreFormat {
        StoreFormat(
            secret: (0..<secretLength).map { _ in UInt8.random(in: .min ... .max, using: &generator) },
            segmentSize: segmentSize,
            epoch: 1,
            suspectBefore: 0,
            nextOrder: 1,
            isClean: false,
            bootIdentity: []
        )
    }

    /// The seed of every hash and checksum in the directory's other files.
    var hashSeed: UInt64 {
        HeadHash.of(secret, seed: Self.hashSeedSeed)
    }

    /// One copy; a boot identity beyond 64 bytes is cut.
    func encode() -> [UInt8] {
        precondition(secret.count == Self.secretLength, "a secret of \(secret.count) bytes instead of 32")
        let identity = bootIdentity.prefix(Self.bootIdentityLimit)
        return [UInt8](zeroed: Self.size) { file in
            file.put(Self.magic, at: 0)
            file.put(Self.version, at: 8)
            file.put(UInt32(isClean ? 1 : 0), at: 12)
            secret.withUnsafeBytes { file.put($0, at: 16) }
            file.put(UInt64(clamping: segmentSize), at: 48)
            file.put(epoch, at: 56)
            file.put(suspectBefore, at: 64)
            file.put(nextOrder, at: 72)
            file.put(UInt8(truncatingIfNeeded: identity.count), at: 80)
            identity.withUnsafeBytes { file.put($0, at: 81) }
            file.put(generation, at: 152)
            file.put(HeadHash.of(UnsafeRawBufferPointer(file).part(0..<248), seed: 0), at: 248)
        }
    }

    /// What a copy says; nil when it is damaged, cut, of another version or names an impossible segment size.
    static func decode(_ bytes: some Collection<UInt8>) -> StoreFormat? {
        Array(bytes).withUnsafeBytes { file in
            guard file.count == size,
                file.number(at: 0) == magic,
                file.number(at: 8) == version,
                file.number(at: 248) == HeadHash.of(file.part(0..<248), seed: 0)
            else { return nil }
            let flags = file.number(at: 12, as: UInt32.self)
            let identityLength = Int(file[80])
            guard flags <= 1,
                let segmentSize = Int(exactly: file.number(at: 48, as: UInt64.self)),
                segmentSize >= Geometry.minimumSegmentSize,
                segmentSize % Geometry.page == 0,
                UInt64(segmentSize) / UInt64(Geometry.unit) <= UInt64(UInt32.max),
                identityLength <= bootIdentityLimit,
                file.isZero((81 + identityLength)..<152),
                file.isZero(160..<248)
            else { return nil }
            return StoreFormat(
                secret: Array(file[16..<48]),
                segmentSize: segmentSize,
                epoch: file.number(at: 56),
                suspectBefore: file.number(at: 64),
                nextOrder: file.number(at: 72),
                isClean: flags == 1,
                bootIdentity: Array(file[81..<(81 + identityLength)]),
                generation: file.number(at: 152)
            )
        }
    }
}
