// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastTesting

@testable import HoldfastStorage

/// Parts of a store's files with something in every field.
enum FormatSamples {
    static let seed: UInt64 = 0x5EED_0F_7E57

    static func detail(_ name: String, tags: Set<String> = ["blue", "a", "zürich"]) -> RecordDetail {
        RecordDetail(
            key: StoreKey("key " + name),
            variant: StoreKey("variant " + name),
            tags: tags,
            metadata: ByteChunk(copying: "metadata of \(name)".utf8)
        )
    }

    /// A record of an entry with an inline body, padded to whole units.
    static func record(
        _ name: String,
        segment: UInt64 = 5,
        order: UInt64 = 77,
        body: [UInt8] = Array("the body".utf8),
        seed: UInt64 = seed
    ) -> [UInt8] {
        let detail = ByteChunk(self.detail(name).encode())
        var header = RecordHeader(kind: .entry, segment: segment, order: order, primary: 3)
        header.bodyLength = body.count
        header.inlineLength = body.count
        header.bodyWord = header.sum(of: ByteChunk(body))
        return padded(header.encode(detail: detail, seed: seed) + body)
    }

    /// A header with numbers that the kind allows.
    static func header(_ kind: RecordKind, blob: Bool, using generator: inout SeededGenerator) -> RecordHeader {
        var header = RecordHeader(
            kind: kind,
            segment: generator.next(),
            order: generator.next(),
            primary: generator.next()
        )
        header.isPinned = Bool.random(using: &generator)
        header.hasBlob = blob && kind == .entry
        header.version = generator.next()
        header.variant = UInt32(truncatingIfNeeded: generator.next())
        header.keyID = header.hasBlob ? 4 : 0
        header.storedAt = .at(Int64(truncatingIfNeeded: generator.next()))
        header.uselessAfter = .at(Int64(truncatingIfNeeded: generator.next()))
        header.horizon = generator.next()
        header.bodyWord = generator.next()
        guard kind == .entry else { return header }
        header.bodyLength = Int.random(in: 0...(header.hasBlob ? 1 << 30 : 400), using: &generator)
        header.inlineLength = header.hasBlob ? Int.random(in: 1...65_520, using: &generator) : header.bodyLength
        return header
    }

    static func padded(_ record: [UInt8]) -> [UInt8] {
        record + [UInt8](repeating: 0, count: (16 - record.count % 16) % 16)
    }

    /// Calls `visit` with `bytes` after each byte in turn was set to some other values, and then with each truncation.
    static func damaged(_ bytes: [UInt8], _ visit: (_ damaged: [UInt8], _ place: Int) throws -> Void) rethrows {
        var copy = bytes
        for place in bytes.indices {
            let original = bytes[place]
            for value in [original ^ 1, original ^ 0x80, ~original, original &+ 1] {
                copy[place] = value
                try visit(copy, place)
            }
            copy[place] = original
        }
        for count in bytes.indices { try visit(Array(bytes.prefix(count)), count) }
    }

    /// `bytes` with a few places set to values that make extreme numbers, cut at times.
    static func hostile(_ bytes: [UInt8], using generator: inout SeededGenerator) -> [UInt8] {
        var copy = bytes
        for _ in 0..<Int.random(in: 1...3, using: &generator) {
            let place = Int.random(in: 0..<copy.count, using: &generator)
            let value = [0, 1, 0x7F, 0x80, 0xFF, UInt8(truncatingIfNeeded: generator.next())].randomElement(
                using: &generator
            )
            for near in place..<min(copy.count, place + [1, 4, 8][Int.random(in: 0...2, using: &generator)]) {
                copy[near] = value ?? 0
            }
        }
        if Int.random(in: 0..<4, using: &generator) == 0 {
            copy.removeLast(Int.random(in: 0...copy.count, using: &generator))
        }
        return copy
    }
}

extension RecordHeader {
    static func decode(_ bytes: [UInt8], seed: UInt64 = FormatSamples.seed) -> RecordHeader? {
        bytes.withUnsafeBytes { decode($0, seed: seed) }
    }
}
