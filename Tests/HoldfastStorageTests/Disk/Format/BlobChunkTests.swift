// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastTesting
import Testing

@testable import HoldfastStorage

@Suite("BlobChunk", .timeLimit(.minutes(20)))
struct BlobChunkTests {
    private static func check(_ chunk: ByteChunk, number: UInt64, index: Int) -> Int? {
        chunk.withUnsafeBytes { BlobChunk.check($0, number: number, index: index) }
    }

    @Test("A chunk with its trailer is valid only under its number and index", arguments: [1, 15, 16, 5_000, 65_520])
    func roundTrip(count: Int) {
        var generator = SeededGenerator(seed: UInt64(count))
        let stored = ByteChunk(generator.bytes(count))
        let chunk = ByteChunk(stored.array + BlobChunk.trailer(for: stored, number: 7, index: 3))
        #expect(chunk.count == count + 16)
        #expect(Self.check(chunk, number: 7, index: 3) == count)
        #expect(Self.check(chunk, number: 8, index: 3) == nil)
        #expect(Self.check(chunk, number: 7, index: 4) == nil)
        #expect(Self.check(ByteChunk(chunk.array + [0]), number: 7, index: 3) == nil)
    }

    @Test("No stated length of a body is too large to compute with")
    func anyLength() async throws {
        var header = RecordHeader(kind: .entry, segment: 1, order: 2, primary: 3)
        (header.hasBlob, header.inlineLength, header.bodyLength) = (true, 2, .max)
        (header.isPinned, header.detailLength) = (true, 8_000)
        #expect(BlobShape(header).chunks == .max / 2 + 1)
        let files = SimulatedFileSystem(remembersUnsynced: false)
        let store = try await DiskStore.open(directory: "/store", capacity: 8 << 20, fileSystem: files, now: .at(0))
        #expect(store.engine.writer.pinWeight(header) == .max)
        await store.close()
        let quota = SpaceQuota(budget: SpaceBudget(geometry: Geometry(capacity: 8 << 20)), used: .max)
        #expect(quota.excess > 0)
    }

    @Test("Any damage to a chunk or its trailer is found")
    func damage() {
        let stored = ByteChunk(copying: "some bytes of a body".utf8)
        let chunk = stored.array + BlobChunk.trailer(for: stored, number: .max, index: .max)
        #expect(Self.check(ByteChunk(chunk), number: .max, index: .max) == stored.count)
        FormatSamples.damaged(chunk) { damaged, place in
            #expect(Self.check(ByteChunk(damaged), number: .max, index: .max) == nil, "byte \(place)")
        }
    }

    @Test("An empty chunk, or one longer than allowed, is invalid")
    func lengths() {
        let none = BlobChunk.trailer(for: ByteChunk(), number: 1, index: 0)
        #expect(Self.check(ByteChunk(none), number: 1, index: 0) == nil)
        let long = ByteChunk([UInt8](repeating: 1, count: 65_521))
        let chunk = long.array + BlobChunk.trailer(for: long, number: 1, index: 0)
        #expect(Self.check(ByteChunk(chunk), number: 1, index: 0) == nil)
    }

    @Test(
        "The size of a blob's file follows from its body's size",
        arguments: [
            (0, 65_520, 0, 0), (1, 65_520, 0, 17), (65_520, 65_520, 0, 65_536), (65_521, 65_520, 0, 65_553),
            (131_040, 65_520, 0, 131_072), (65_492, 65_492, 28, 65_536), (65_493, 65_492, 28, 65_536 + 45),
            (-1, 65_520, 0, .max), (1, 0, 0, .max), (1, 65_520, 1, .max), (1, 1, -1, .max), (.max, 1, 0, .max),
            (.max, 65_520, 0, .max), (1, 1, .max, .max),
        ] as [(Int, Int, Int, Int)]
    )
    func storedSize(plain: Int, perChunk: Int, overhead: Int, size: Int) {
        #expect(BlobChunk.storedSize(plain: plain, perChunk: perChunk, overhead: overhead) == size)
    }
}
