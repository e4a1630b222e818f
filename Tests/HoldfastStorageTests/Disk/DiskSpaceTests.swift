// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastStorage
import Testing

@Suite("DiskStore: space", .timeLimit(.minutes(10)))
struct DiskSpaceTests {
    private func withStore(
        capacity: Int,
        files: any FileSystem = POSIXFileSystem(),
        _ body: (DiskStore, TemporaryDirectory) async throws -> Void
    ) async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let store = try await openStore(directory, capacity: capacity, files: files)
        try await body(store, directory)
        await store.close()
    }

    @Test("A body that a reader holds open counts until it is closed, though its file is unlinked")
    func heldBodies() async throws {
        try await withStore(capacity: 1 << 20) { store, directory in
            let empty = store.statistics.bytesUsed
            #expect(empty == directory.blockBytes())
            let entry = try await store.put("a", [UInt8](repeating: 1, count: 100_000))
            var body: (any StoredBody)? = try await store.body(of: entry)
            try await store.invalidate(StoreKey("a"))
            #expect(directory.blockBytes() == empty)
            #expect(store.statistics.bytesUsed == empty + 102_400, "100,000 bytes in blocks of 4,096")
            #expect(try await body?.read(from: 99_999, upTo: 5).array == [1])
            body = nil
            // The store closes the file on its own thread, where the next change comes after it.
            try await store.invalidate(StoreKey("b"))
            #expect(store.statistics.bytesUsed == empty)
        }
    }

    @Test("Held bodies cannot push the store over its capacity: writes are refused instead")
    func refusesRatherThanGrows() async throws {
        try await withStore(capacity: 500_000) { store, _ in
            var held: [any StoredBody] = []
            var refused = 0
            for number in 0..<12 {
                do {
                    let entry = try await store.put("k\(number)", [UInt8](repeating: 1, count: 90_000))
                    held.append(try await store.body(of: entry))
                } catch let error as StoreError {
                    #expect(error.code == .noSpace)
                    refused += 1
                }
                #expect(store.statistics.bytesUsed <= 500_000)
            }
            #expect(refused > 0 && held.count >= 4)
            for body in held { #expect(try await body.whole().count == 90_000) }
        }
    }

    @Test("An abandoned body leaves the disk and the sum", arguments: [true, false])
    func abandoned(drops: Bool) async throws {
        try await withStore(capacity: 1 << 20) { store, directory in
            let empty = store.statistics.bytesUsed
            var writer: (any EntryWriter)? = try await store.write(
                StoreKey("a"),
                variant: StoreKey(""),
                description: EntryDescription("m"),
                expectedLength: nil,
                now: .at(0)
            )
            try await writer?.append(ByteChunk([UInt8](repeating: 1, count: 150_000)))
            #expect(store.statistics.bytesUsed == empty + 131_072, "two whole chunks are written, the rest waits")
            #expect(directory.blockBytes() == empty + 131_072)
            if !drops { writer?.abandon() }
            writer = nil
            // Changes come one after the other: when this one is done, so is the removal.
            try await store.invalidate(StoreKey("none"))
            #expect(directory.blockBytes() == empty)
            #expect(store.statistics.bytesUsed == empty)
        }
    }

    @Test("A removal that cannot write the key's file anew takes the whole key rather than leave the entry")
    func removalWithoutRoom() async throws {
        let files = FaultyFileSystem()
        try await withStore(capacity: 1 << 20, files: files) { store, directory in
            let first = try await store.put("a", variant: "1", [1])
            try await store.put("a", variant: "2", [2])
            // The first step of the removal makes the temporary file.
            files.plan(.once(0, errno: 28))
            try await store.remove(first)
            #expect(try await store.get("a").isEmpty)
            #expect(directory.files() == ["FORMAT", "lock"])
        }
    }
}
