// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Gathers the parts of a record: little-endian numbers and counted bytes.
struct ByteEncoder {
    private(set) var bytes: [UInt8] = []

    mutating func put<Number: FixedWidthInteger>(_ number: Number) {
        withUnsafeBytes(of: number.littleEndian) { bytes.append(contentsOf: $0) }
    }

    mutating func put(raw: [UInt8]) {
        bytes.append(contentsOf: raw)
    }

    /// Bytes after their count.
    mutating func put(counted: some Collection<UInt8>) {
        put(UInt64(counted.count))
        bytes.append(contentsOf: counted)
    }
}

/// Takes a record apart; every step answers nil where the bytes do not suffice, and none traps.
struct ByteDecoder {
    private let bytes: ArraySlice<UInt8>
    private var position: Int

    init(_ bytes: ArraySlice<UInt8>) {
        self.bytes = bytes
        position = bytes.startIndex
    }

    /// How many bytes are left.
    var remaining: Int { bytes.endIndex - position }

    mutating func number<Number: FixedWidthInteger>(_: Number.Type = Number.self) -> Number? {
        let width = Number.bitWidth / 8
        guard remaining >= width else { return nil }
        let part = bytes[position..<(position + width)]
        position += width
        return part.withUnsafeBytes { Number(littleEndian: $0.loadUnaligned(as: Number.self)) }
    }

    mutating func raw(_ count: Int) -> ArraySlice<UInt8>? {
        guard count >= 0, count <= remaining else { return nil }
        defer { position += count }
        return bytes[position..<(position + count)]
    }

    /// A count of things of which each takes at least `width` bytes, so that a false count reserves no memory.
    mutating func count(ofWidth width: Int = 1) -> Int? {
        guard let count = number(UInt64.self), count <= UInt64(remaining / width) else { return nil }
        return Int(count)
    }

    mutating func counted() -> ArraySlice<UInt8>? {
        count().flatMap { raw($0) }
    }
}

/// Numbers of files: random, so that a name says nothing of what the file holds and is never used twice.
enum FileNumber {
    static func random() -> UInt64 {
        var generator = SystemRandomNumberGenerator()
        return UInt64.random(in: 1 ... .max, using: &generator)
    }

    /// Sixteen lower-case hexadecimal digits.
    static func name(_ number: UInt64) -> String {
        let digits = String(number, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }

    /// The number in a name of this suffix; nil for every other name.
    static func number(in name: String, suffix: String) -> UInt64? {
        guard name.utf8.count == 16 + suffix.utf8.count, name.hasSuffix(suffix) else { return nil }
        guard let number = UInt64(name.prefix(16), radix: 16), self.name(number) + suffix == name else { return nil }
        return number
    }
}
