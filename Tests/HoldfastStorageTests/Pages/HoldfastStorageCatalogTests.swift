// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastStorage
import Testing

/// The code of `HoldfastStorage.docc`: articles, and the steps from first to last.
@Suite("Catalog: HoldfastStorage", .timeLimit(.minutes(20)))
struct HoldfastStorageCatalogTests {
    private let now = StoreInstant(milliseconds: 1_700_000_000_000)

    @Test("Choosing a store")
    func stores() async throws {
        let folder = try TemporaryDirectory()
        defer { folder.remove() }
        let directory = folder.path
        let disk = try await DiskStore.open(directory: directory, capacity: 64 << 20, now: now)
        let store = TieredStore(memory: 8 << 20, over: disk)
        try await keep("hello", as: "a", in: store, now: now)
        let reader = try await DiskStoreReader.open(directory: directory)
        print(reader.holder ?? 0, reader.statistics.entryCount, reader.statistics.bytesUsed)
        #expect(reader.statistics.entryCount == 1)
        let report = try await store.verify { progress in print(progress.fraction) }
        let packed = try await store.compact()
        print(report.isClean, packed.bytesFreed)
        #expect(report.isClean)
        await store.close()
    }

    func keep(_ text: String, as name: String, in store: any CacheStore, now: StoreInstant) async throws {
        let writer = try await store.write(
            StoreKey(Array(name.utf8)),
            variant: StoreKey([]),
            description: EntryDescription(metadata: ByteChunk(), tags: ["texts"]),
            expectedLength: text.utf8.count,
            now: now
        )
        try await writer.append(ByteChunk(copying: text.utf8))
        try await writer.commit(nil, now: now)
    }

    func text(named name: String, in store: any CacheStore, now: StoreInstant) async throws -> String? {
        let key = StoreKey(Array(name.utf8))
        var entries = store.peek(key, now: now)
        if entries == nil { entries = try await store.entries(for: key, now: now) }
        guard let entry = entries?.first else { return nil }
        let body = try await store.body(of: entry)
        var bytes: [UInt8] = []
        while bytes.count < entry.bodyLength {
            try await body.read(from: bytes.count, upTo: 64 << 10).append(to: &bytes)
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    func openStore(in directory: String, now: StoreInstant) async throws -> any CacheStore {
        let disk = try await DiskStore.open(directory: directory, capacity: 64 << 20, now: now)
        return TieredStore(memory: 8 << 20, over: disk)
    }

    @Test("A store in three steps")
    func tutorial() async throws {
        let folder = try TemporaryDirectory()
        defer { folder.remove() }
        let disk = try await openStore(in: folder.path, now: now)
        for store in [MemoryStore(capacity: 1 << 20), disk] as [any CacheStore] {
            try await keep("hello", as: "greeting", in: store, now: now)
            #expect(try await text(named: "greeting", in: store, now: now) == "hello")
            #expect(try await text(named: "other", in: store, now: now) == nil)
            await store.close()
        }
        let again = try await openStore(in: folder.path, now: now)
        #expect(try await text(named: "greeting", in: again, now: now) == "hello")
        await again.close()
    }
}
