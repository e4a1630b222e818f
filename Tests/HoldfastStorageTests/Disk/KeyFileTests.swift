// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastTesting
import Testing

@testable import HoldfastStorage

@Suite("KeyFile", .timeLimit(.minutes(5)))
struct KeyFileTests {
    private static let key = StoreKey("primary")

    private static func record(_ number: UInt64, body: Int) -> KeyFile.Record {
        let entry = StoredEntry(
            key: key,
            variant: StoreKey("v\(number)"),
            version: StoredEntry.Version(number: number),
            description: EntryDescription("metadata \(number)", uselessAfter: .at(-5), tags: ["a", "bb"]),
            bodyLength: body,
            storedAt: .at(.max),
            isPinned: number % 2 == 0
        )
        let sums = (0..<BodyPlace.chunkCount(body)).map { UInt64($0) &* 77 }
        return KeyFile.Record(entry: entry, body: BodyPlace(file: body == 0 ? 0 : number, checksums: sums))
    }

    private static let bytes = KeyFile.encode(
        key,
        [record(9, body: 200_000), record(4, body: 0), record(2, body: 65_536)],
        file: 42
    )

    @Test("What was encoded is decoded")
    func roundTrip() throws {
        let decoded = try #require(KeyFile.decode(Self.bytes, file: 42))
        #expect(decoded.key == Self.key)
        #expect(
            decoded.records.map(\.entry) == [(9, 200_000), (4, 0), (2, 65_536)].map { Self.record($0, body: $1).entry }
        )
        #expect(decoded.records.map(\.body.checksums.count) == [4, 0, 1])
    }

    @Test("A file under another number, cut or with a flipped bit is refused")
    func damage() {
        #expect(KeyFile.decode(Self.bytes, file: 43) == nil)
        for count in 0..<Self.bytes.count {
            #expect(KeyFile.decode(Array(Self.bytes.prefix(count)), file: 42) == nil)
            var flipped = Self.bytes
            flipped[count] ^= 1 << UInt8(count % 8)
            #expect(KeyFile.decode(flipped, file: 42) == nil)
        }
        #expect(KeyFile.decode(Self.bytes + [0], file: 42) == nil)
    }

    @Test("No bytes make the parser trap, also beneath the checksum", arguments: [21, 22, 23] as [UInt64])
    func fuzz(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let content = Array(Self.bytes.dropFirst(16))
        for _ in 0..<20_000 {
            var bytes = content
            for _ in 0..<Int.random(in: 1...4, using: &generator) {
                let place = Int.random(in: 0..<bytes.count, using: &generator)
                // Extreme bytes make extreme counts, which are what overflows.
                bytes[place] =
                    [0, 1, 0x7F, 0x80, 0xFF, UInt8.random(in: 0...255, using: &generator)]
                    .randomElement(using: &generator) ?? 0
            }
            if Bool.random(using: &generator) {
                bytes.removeLast(Int.random(in: 0...bytes.count, using: &generator))
            }
            _ = KeyFile.decodeContent(bytes[...], file: 42)
            _ = KeyFile.decode(bytes, file: 42)
            _ = KeyFile.decodeContent(generator.bytes(Int.random(in: 0...80, using: &generator))[...], file: 42)
        }
    }

    @Test("Only names that the store would give itself are its files")
    func fileNumbers() {
        #expect(FileNumber.name(255) == "00000000000000ff")
        #expect(FileNumber.number(in: "00000000000000ff.key", suffix: ".key") == 255)
        for name in [
            "00000000000000FF.key", "ff.key", "+0000000000000ff.key", "00000000000000ff.body", ".key", "é.key",
        ] {
            #expect(FileNumber.number(in: name, suffix: ".key") == nil)
        }
    }

    @Test("A format file with any damage or another version is refused")
    func formatFile() {
        let secret = [UInt8](repeating: 7, count: 32)
        let bytes = FormatFile.encode(secret: secret)
        #expect(FormatFile.decode(bytes) == secret)
        #expect(FormatFile.decode(FormatFile.encode(secret: secret, version: 2)) == nil)
        for place in bytes.indices {
            var flipped = bytes
            flipped[place] ^= 4
            #expect(FormatFile.decode(flipped) == nil)
            #expect(FormatFile.decode(Array(bytes.prefix(place))) == nil)
        }
    }
}
