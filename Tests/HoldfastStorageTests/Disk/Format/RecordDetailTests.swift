// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastTesting
import Testing

@testable import HoldfastStorage

@Suite("RecordDetail", .timeLimit(.minutes(20)))
struct RecordDetailTests {
    @Test("What was encoded is decoded", arguments: [1, 2, 3] as [UInt64])
    func roundTrip(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        for _ in 0..<300 {
            func bytes(_ limit: Int) -> [UInt8] { generator.bytes(Int.random(in: 0...limit, using: &generator)) }
            let detail = RecordDetail(
                key: StoreKey(bytes(90)),
                variant: StoreKey(bytes(20)),
                tags: Set((0..<Int.random(in: 0...5, using: &generator)).map { "tag é \($0 * 7)" }),
                metadata: ByteChunk(bytes(300))
            )
            let encoded = detail.encode()
            #expect(RecordDetail.decode(ByteChunk(encoded)) == detail, "seed \(seed)")
            let part = ByteChunk([1, 2, 3] + encoded + [4])[3..<(encoded.count + 3)]
            #expect(RecordDetail.decode(part) == detail)
            #expect(RecordDetail.decode(part, knownKey: detail.key) == detail)
            #expect(RecordDetail.decode(part, knownKey: StoreKey(detail.key.bytes + [0])) == nil)
            guard let last = detail.key.bytes.last else { continue }
            #expect(RecordDetail.decode(part, knownKey: StoreKey(detail.key.bytes.dropLast() + [last ^ 1])) == nil)
            #expect(RecordDetail.decode(part, knownKey: StoreKey(detail.key.bytes.dropLast())) == nil)
        }
    }

    @Test("The fields are at their documented positions, tags in byte order")
    func layout() {
        let detail = RecordDetail(
            key: StoreKey([1, 2]),
            variant: StoreKey([3]),
            tags: ["b", "ab", "Z"],
            metadata: ByteChunk([4])
        )
        #expect(
            detail.encode() == [2, 0, 0, 0, 1, 2, 1, 0, 0, 0, 3, 3, 0, 1, 0, 90, 2, 0, 97, 98, 1, 0, 98, 1, 0, 0, 0, 4]
        )
    }

    @Test("Metadata shares the storage it came from")
    func sharing() throws {
        let storage = RecordDetail(
            key: StoreKey("k"),
            variant: StoreKey([]),
            tags: [],
            metadata: ByteChunk([UInt8](repeating: 7, count: 100))
        ).encode()
        let chunk = ByteChunk(storage)
        let detail = try #require(RecordDetail.decode(chunk, knownKey: StoreKey("k")))
        let inside = chunk.withUnsafeBytes { all in
            detail.metadata.withUnsafeBytes { part in
                guard let start = all.baseAddress, let place = part.baseAddress else { return false }
                return place >= start && place < start + all.count
            }
        }
        #expect(inside)
    }

    @Test("No damaged byte and no truncation makes the parser trap or read out of bounds")
    func damage() {
        let bytes = FormatSamples.detail("one").encode()
        FormatSamples.damaged(bytes) { damaged, place in
            let detail = RecordDetail.decode(ByteChunk(damaged))
            if damaged.count < bytes.count { #expect(detail == nil, "cut at \(place)") }
            if let detail { #expect(detail.encode() == damaged, "byte \(place)") }
        }
        #expect(RecordDetail.decode(ByteChunk(bytes + [0])) == nil)
    }

    @Test("No input makes the parser trap", arguments: [5, 6] as [UInt64])
    func fuzz(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let sample = FormatSamples.detail("fuzz").encode()
        for _ in 0..<30_000 {
            let bytes = ByteChunk(FormatSamples.hostile(sample, using: &generator))
            if let detail = RecordDetail.decode(bytes) { #expect(detail.encode() == bytes.array, "seed \(seed)") }
            _ = RecordDetail.decode(bytes, knownKey: StoreKey("key fuzz"))
            _ = RecordDetail.decode(ByteChunk(generator.bytes(Int.random(in: 0...40, using: &generator))))
        }
    }

    @Test(
        "Tags that are not UTF-8, repeated or out of order are refused",
        arguments: [
            ([[0x61], [0x62]], true), ([[0x62], [0x61]], false), ([[0x61], [0x61]], false), ([[0xFF]], false),
            ([[0xC3]], false), ([[]], true), ([[], []], false),
        ] as [([[UInt8]], Bool)]
    )
    func tags(tags: [[UInt8]], isValid: Bool) {
        var bytes = [UInt8](repeating: 0, count: 8)
        bytes += [UInt8(tags.count), 0]
        for tag in tags {
            bytes += [UInt8(tag.count), 0]
            bytes += tag
        }
        bytes += [0, 0, 0, 0]
        #expect((RecordDetail.decode(ByteChunk(bytes)) != nil) == isValid)
    }

    @Test("A tag longer than its length field allows is left out")
    func longTag() {
        let detail = RecordDetail(
            key: StoreKey("k"),
            variant: StoreKey([]),
            tags: [String(repeating: "x", count: 65_536), "short"],
            metadata: ByteChunk()
        )
        #expect(RecordDetail.decode(ByteChunk(detail.encode()))?.tags == ["short"])
    }
}
