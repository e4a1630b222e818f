// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Harness
internal import HoldfastStorage

/// The entries of a case, the same for every subject: keys of 64 bytes, metadata of 256, bodies of one size.
///
/// There are only a few different bodies, chosen by the entry's number. Each begins and ends with a stamp, so that another
/// entry's bytes are detected almost without cost.
struct Workload: Sendable {
    static let keyLength = 64
    static let metadataLength = 256

    /// The size of a body.
    let size: Int
    private let bodies: [ByteChunk]
    private let metadatas: [ByteChunk]
    private let values: [[UInt8]]

    /// Creates a workload of this size.
    init(size: Int) {
        self.size = size
        let count = max(7, min(61, (16 << 20) / size))
        var numbers = SeededNumbers(seed: UInt64(size))
        var values: [[UInt8]] = []
        for number in 0..<count {
            var bytes = [UInt8]()
            bytes.reserveCapacity(Self.metadataLength + size)
            while bytes.count < Self.metadataLength + size {
                withUnsafeBytes(of: numbers.next()) { bytes.append(contentsOf: $0) }
            }
            let stamp = Self.stamp(number)
            for (place, byte) in withUnsafeBytes(of: stamp, Array.init).enumerated() {
                bytes[Self.metadataLength + place] = byte
                bytes[Self.metadataLength + size - 8 + place] = byte
            }
            values.append(bytes)
        }
        self.values = values
        metadatas = values.map { ByteChunk(Array($0.prefix(Self.metadataLength))) }
        bodies = values.map { ByteChunk(Array($0.dropFirst(Self.metadataLength))) }
    }

    /// The key of an entry.
    func key(_ entry: Int) -> [UInt8] {
        var bytes = Array("GET https://bench.example/assets/".utf8)
        bytes.reserveCapacity(Self.keyLength)
        // The digits are scattered, so that keys do not arrive in order and do not share long prefixes.
        let mixed = UInt64(entry) &* 0x9E37_79B9_7F4A_7C15
        for shift in stride(from: 60, through: 0, by: -4) {
            bytes.append(UInt8(97 + (mixed >> UInt64(shift)) & 15))
        }
        bytes += Array(".js?version=000".utf8)
        return bytes
    }

    func body(_ entry: Int) -> ByteChunk { bodies[entry % bodies.count] }
    func metadata(_ entry: Int) -> ByteChunk { metadatas[entry % metadatas.count] }

    /// Metadata and body together, for subjects with a single value.
    func value(_ entry: Int) -> [UInt8] { values[entry % values.count] }

    /// The length of ``value(_:)``.
    var valueLength: Int { Self.metadataLength + size }

    /// Whether the bytes are this entry's body, judged by length and stamps.
    func holds(_ bytes: UnsafeRawBufferPointer, _ entry: Int) -> Bool {
        guard bytes.count == size else { return false }
        let stamp = Self.stamp(entry % bodies.count)
        return bytes.loadUnaligned(as: UInt64.self) == stamp
            && bytes.loadUnaligned(fromByteOffset: size - 8, as: UInt64.self) == stamp
    }

    /// Whether the bytes are this entry's value, judged by length and stamps.
    func holdsValue(_ bytes: [UInt8], _ entry: Int) -> Bool {
        guard bytes.count == valueLength else { return false }
        return bytes.withUnsafeBytes { holds(UnsafeRawBufferPointer(rebasing: $0[Self.metadataLength...]), entry) }
    }

    private static func stamp(_ number: Int) -> UInt64 {
        (UInt64(number) &+ 1) &* 0xD1B5_4A32_D192_ED03
    }
}
