// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSimulation
import HoldfastStorage
import HoldfastTesting
import Testing

@Suite("MemoryStore", .timeLimit(.minutes(20)))
struct MemoryStoreTests {
    @Test("An entry costs its parts plus 704 bytes exactly")
    func exactCost() async throws {
        let store = MemoryStore(capacity: 10_000, maximumEntrySize: 10_000)
        let description = EntryDescription("12345", tags: ["ab", "é"])
        try await store.put("key", variant: "va", [1, 2, 3, 4], description)
        #expect(store.statistics.bytesUsed == 704 + 3 + 2 + 5 + 4 + 4)
        let writer = try await store.write(
            StoreKey("key"),
            variant: StoreKey("va"),
            description: description,
            expectedLength: nil,
            now: .at(0)
        )
        try await writer.append(ByteChunk([1, 2, 3, 4, 5]))
        #expect(store.statistics.bytesUsed == 2 * 718 + 4 + 5, "both count until the commit")
        _ = try await writer.commit(nil, now: .at(0))
        #expect(store.statistics.bytesUsed == 718 + 5)
        try await store.invalidate(StoreKey("key"))
        #expect(store.statistics.bytesUsed == 0)
    }

    @Test("Tags are compared and chosen by their UTF-8 bytes, also those of entries that are being written")
    func tagBytes() async throws {
        let (composed, decomposed) = ("\u{E9}", "e\u{301}")
        #expect(composed == decomposed)
        func disk() async throws -> DiskStore {
            let files = SimulatedFileSystem(remembersUnsynced: false)
            return try await DiskStore.open(directory: "/store", capacity: 4 << 20, fileSystem: files, now: .at(0))
        }
        let stores: [any CacheStore] = [
            MemoryStore(capacity: 4 << 20), try await disk(), TieredStore(memory: 1 << 20, over: try await disk()),
        ]
        for store in stores {
            let description = EntryDescription("m", tags: [decomposed])
            for tag in [composed, decomposed] {
                try await store.put("a", [1], description)
                let writer = try await store.writer("b", description: description)
                try await store.purge(.tag(tag), now: .at(1))
                let isOther = tag.utf8.count == composed.utf8.count
                #expect(try await store.get("a").count == (isOther ? 1 : 0), "\(type(of: store))")
                let code = await errorCode { _ = try await writer.commit(nil, now: .at(1)) }
                let expected: StoreError.Code? = isOther ? nil : .superseded
                #expect(code == expected, "\(type(of: store))")
            }
            let many = Set((10..<74).map { "f\($0)" } + [decomposed])
            let kept = try await store.put("c", [1], EntryDescription("m", tags: many)).description.tags
            #expect(kept.count == 64 && kept.contains(decomposed), "\(type(of: store))")
            await store.close()
        }
    }

    @Test("An abandoned or released writer returns its bytes at once")
    func abandonedBytes() async throws {
        let store = MemoryStore(capacity: 1_000_000)
        var writer: (any EntryWriter)? = try await store.write(
            StoreKey("a"),
            variant: StoreKey(""),
            description: EntryDescription("m"),
            expectedLength: nil,
            now: .at(0)
        )
        try await writer?.append(ByteChunk([UInt8](repeating: 0, count: 100_000)))
        #expect(store.statistics.bytesUsed == 704 + 1 + 1 + 100_000)
        writer = nil
        #expect(store.statistics.bytesUsed == 0)
    }

    @Test("A committed body is contiguous in memory, however it was written")
    func bytesInMemory() async throws {
        let store = MemoryStore(capacity: 1_000_000)
        let writer = try await store.write(
            StoreKey("a"),
            variant: StoreKey(""),
            description: EntryDescription("m"),
            expectedLength: nil,
            now: .at(0)
        )
        var generator = SeededGenerator(seed: 1)
        let bytes = generator.bytes(100_000)
        for start in stride(from: 0, to: bytes.count, by: 10_000) {
            try await writer.append(ByteChunk(bytes)[start..<(start + 10_000)])
        }
        let entry = try await writer.commit(nil, now: .at(0))
        #expect(try await store.body(of: entry).bytesInMemory?.array == bytes)
    }

    @Test("Trimming evicts the least used entries and keeps pins")
    func trim() async throws {
        let store = MemoryStore(capacity: 1_000_000, policy: .lru)
        for number in 0..<10 { try await store.put("k\(number)", [UInt8](repeating: 0, count: 10_000)) }
        let pinned = try #require(try await store.get("k0").first)
        #expect(try await store.setPinned(true, pinned))
        store.trim(to: 35_000)
        #expect(store.statistics.bytesUsed <= 35_000)
        #expect(try await store.get("k9").count == 1)
        #expect(try await store.get("k1").isEmpty)
        store.trim(to: -1)
        #expect(try await store.get("k0").count == 1)
        #expect(store.statistics.entryCount == 1)
    }

    @Test("An entry that cannot fit evicts nothing")
    func nothingInVain() async throws {
        let store = MemoryStore(capacity: 100_000, maximumEntrySize: 100_000)
        let pinned = try await store.put("p", [UInt8](repeating: 0, count: 40_000))
        #expect(try await store.setPinned(true, pinned))
        try await store.put("a", [1])
        #expect(await errorCode { try await store.put("b", [UInt8](repeating: 0, count: 70_000)) } == .noSpace)
        #expect(try await store.get("a").count == 1)
    }
}
