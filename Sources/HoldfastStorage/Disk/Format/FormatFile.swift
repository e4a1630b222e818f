// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The file `FORMAT`: which version the directory has, and the store's secret.
///
/// Magic (8 bytes), version (4), secret (32), checksum of these (8).
enum FormatFile {
    static let version: UInt32 = 1
    static let secretLength = 32
    private static let magic = Array("HOLDFAST".utf8)
    private static let seed: UInt64 = 0x464F_524D_4154

    /// The whole file.
    static func encode(secret: [UInt8], version: UInt32 = version) -> [UInt8] {
        var encoder = ByteEncoder()
        encoder.put(raw: magic)
        encoder.put(version)
        encoder.put(raw: secret)
        encoder.put(Checksum.of(encoder.bytes, seed: seed))
        return encoder.bytes
    }

    /// The secret; nil when the version is another or the bytes are damaged.
    static func decode(_ bytes: [UInt8]) -> [UInt8]? {
        var decoder = ByteDecoder(bytes[...])
        guard decoder.raw(magic.count)?.elementsEqual(magic) == true,
            decoder.number(UInt32.self) == version,
            let secret = decoder.raw(secretLength),
            let sum = decoder.number(UInt64.self),
            decoder.remaining == 0,
            Checksum.of(Array(bytes.dropLast(8)), seed: seed) == sum
        else { return nil }
        return Array(secret)
    }

    static func newSecret() -> [UInt8] {
        var generator = SystemRandomNumberGenerator()
        return (0..<secretLength).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
    }
}
