// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastTesting
import Synchronization
import Testing

@testable import HoldfastStorage

@Suite("DiskStore: space", .timeLimit(.minutes(20)))
struct DiskSpaceTests {
    /// What a store counts for its directories, FORMAT and lock.
    private static let overhead = 8 * 4_096

    private static func open(_ files: any FileSystem, capacity: Int = 1 << 20) async throws -> DiskStore {
        try await DiskStore.open(directory: "/store", capacity: capacity, fileSystem: files, now: .at(0))
    }

    private static func writer(_ store: DiskStore, _ key: String) async throws -> any EntryWriter {
        try await store.write(
            StoreKey(key),
            variant: StoreKey(""),
            description: EntryDescription("m"),
            expectedLength: nil,
            now: .at(0)
        )
    }

    /// Waits until what was let go of is gone; the store does that on threads of its own.
    static func settle(_ isSettled: () -> Bool) async {
        var tries = 0
        while !isSettled(), tries < 1_000_000 {
            tries += 1
            await Task.yield()
        }
    }

    /// Whether what the store counts is what lies on the disk, FORMAT having three blocks and the lock one.
    private static func agrees(_ store: DiskStore, _ files: SimulatedFileSystem) -> Bool {
        store.statistics.bytesUsed == files.usedBytes + overhead - 4 * 4_096
    }

    @Test(
        "Random operations never exceed the capacity on disk, and the count agrees with the files",
        arguments: 1...6
    )
    func neverMore(seed: UInt64) async throws {
        let capacity = 1 << 20
        let files = SimulatedFileSystem(remembersUnsynced: false)
        var generator = SeededGenerator(seed: seed)
        let store = try await Self.open(files, capacity: capacity)
        var held: [any StoredBody] = []
        var writers: [any EntryWriter] = []
        for step in 0..<600 {
            let key = "k\(Int.random(in: 0..<60, using: &generator))"
            let size = [0, 300, 5_000, 8_000, 20_000, 90_000].randomElement(using: &generator) ?? 0
            do {
                switch Int.random(in: 0..<12, using: &generator) {
                case 0..<6: try await store.put(key, [UInt8](repeating: 1, count: size))
                case 6: if let entry = try await store.get(key).first { held.append(try await store.body(of: entry)) }
                case 7: try await store.invalidate(StoreKey(key))
                case 8:
                    let writer = try await Self.writer(store, key)
                    writers.append(writer)
                    try await writer.append(ByteChunk([UInt8](repeating: 1, count: 150_000)))
                case 9: if !writers.isEmpty { writers.removeFirst().abandon() }
                case 10: held.removeAll { _ in Bool.random(using: &generator) }
                default:
                    if let entry = try await store.get(key).first {
                        _ = try await store.setPinned(Bool.random(using: &generator), entry)
                    }
                }
            } catch let error as StoreError {
                #expect([.noSpace, .superseded].contains(error.code), "seed \(seed) step \(step): \(error)")
            }
            #expect(files.peakBytes <= capacity, "seed \(seed) step \(step)")
            #expect(store.statistics.bytesUsed <= capacity, "seed \(seed) step \(step)")
        }
        #expect(store.statistics.entriesEvicted > 0, "seed \(seed)")
        for body in held { _ = try await body.read(from: 0, upTo: 10) }
        held = []
        for writer in writers { writer.abandon() }
        writers = []
        await store.close()
        let again = try await Self.open(files, capacity: capacity)
        #expect(again.statistics.bytesUsed == files.segmentAndBlobBytes + Self.overhead, "seed \(seed)")
        #expect(files.peakBytes <= capacity, "seed \(seed)")
        await again.close()
    }

    @Test(
        "Bodies with files of their own that are often replaced leave no segments behind, each an open file",
        arguments: [(1, 2, 200_000, 400), (4, 3, 400_000, 200), (64, 6, 2_100_000, 150)]
    )
    func replacedBodies(_ mebibytes: Int, _ keys: Int, _ length: Int, _ puts: Int) async throws {
        let files = SimulatedFileSystem(remembersUnsynced: false)
        let store = try await Self.open(files, capacity: mebibytes << 20)
        var most = 0
        for number in 0..<puts {
            try await store.put("k\(number % keys)", [UInt8](repeating: UInt8(number & 0xFF), count: length))
            most = max(most, files.paths.count { $0.hasSuffix(".seg") })
        }
        let usual = Geometry(capacity: mebibytes << 20).usualSegments
        #expect(most <= usual + 3, "\(mebibytes) MiB: \(most) segments")
        #expect(files.openFileCount <= DiskStore.openFiles(capacity: mebibytes << 20))
        for number in (puts - keys)..<puts {
            let entry = try #require(try await store.get("k\(number % keys)").first)
            let body = try await store.body(of: entry).whole()
            #expect(body == [UInt8](repeating: UInt8(number & 0xFF), count: length))
        }
        #expect(store.statistics.entriesEvicted == 0)
        await store.close()
    }

    @Test("A small store finds room although its main log holds only marks and tombstones that an old entry keeps")
    func marks() async throws {
        let files = SimulatedFileSystem(remembersUnsynced: false)
        let store = try await Self.open(files, capacity: 1 << 20)
        for number in 0..<30 { try await store.put("old\(number)", [UInt8](repeating: 1, count: 1_000)) }
        var refused = 0
        for number in 0..<6_000 {
            do throws(StoreError) {
                _ = try await store.purge(.tag("tag\(number)"), now: .at(0))
                try await store.invalidate(StoreKey("none\(number)"))
            } catch {
                refused += 1
            }
        }
        #expect(refused == 0)
        for number in 0..<200 {
            try await store.put("late\(number)", [UInt8](repeating: 3, count: 1_000))
        }
        #expect(try await store.get("late199").count == 1)
        await store.close()
    }

    @Test("A body that a reader holds open counts until it is closed, although its file is unlinked")
    func heldBodies() async throws {
        let files = SimulatedFileSystem(remembersUnsynced: false)
        let store = try await Self.open(files)
        let entry = try await store.put("a", [UInt8](repeating: 1, count: 100_000))
        var body: (any StoredBody)? = try await store.body(of: entry)
        try await store.invalidate(StoreKey("a"))
        await Self.settle { !files.paths.contains { $0.hasSuffix(".blob") } && Self.agrees(store, files) }
        #expect(!files.paths.contains { $0.hasSuffix(".blob") })
        #expect(Self.agrees(store, files))
        let before = store.statistics.bytesUsed
        #expect(try await body?.read(from: 99_999, upTo: 5).array == [1])
        body = nil
        await Self.settle { store.statistics.bytesUsed < before && Self.agrees(store, files) }
        #expect(store.statistics.bytesUsed == before - 102_400, "100,000 bytes in blocks of 4,096")
        #expect(Self.agrees(store, files))
        await store.close()
    }

    @Test("Held bodies cannot push the store over its capacity: writes are refused instead")
    func refusesRatherThanGrows() async throws {
        let files = SimulatedFileSystem(remembersUnsynced: false)
        let store = try await Self.open(files)
        var held: [any StoredBody] = []
        var refused = 0
        for number in 0..<20 {
            do {
                let entry = try await store.put("k\(number)", [UInt8](repeating: 1, count: 90_000))
                held.append(try await store.body(of: entry))
            } catch {
                #expect(error.code == .noSpace)
                refused += 1
            }
            #expect(files.peakBytes <= 1 << 20)
        }
        #expect(refused > 0 && held.count >= 4)
        for body in held { #expect(try await body.whole().count == 90_000) }
        held = []
        // Files are closed on the store's threads.
        var isIn = false
        for _ in 0..<100_000 where !isIn {
            isIn = (try? await store.put("after", [UInt8](repeating: 1, count: 90_000))) != nil
        }
        #expect(isIn)
        await store.close()
    }

    private static let removals = ["tagged", "prefixed", "invalid"]

    /// A store in which bodies that are read, and whose entries are gone, leave no room for another segment; and these bodies.
    private static func exhausted(
        _ files: SimulatedFileSystem
    ) async throws -> (store: DiskStore, held: [any StoredBody]) {
        let store = try await Self.open(files)
        var held: [any StoredBody] = []
        for number in 0..<8 {
            let entry = try await store.put("k\(number)", [UInt8](repeating: 1, count: 90_000))
            held.append(try await store.body(of: entry))
        }
        for key in removals {
            let entry = try await store.put(key, [1], EntryDescription("m", tags: [key]))
            // Nothing but a removal may take it away.
            #expect(try await store.setPinned(true, entry))
        }
        for number in 0..<8 { try await store.invalidate(StoreKey("k\(number)")) }
        await Self.settle { !files.paths.contains { $0.hasSuffix(".blob") } }
        let (log, quota) = (store.engine.log, store.engine.quota)
        for number in 0..<2_000 {
            let hasRoom = log.ask { $0.hasRoom(.main, length: RecordHeader.size, hasBlob: false) }
            guard hasRoom || quota.hasRoom(log.geometry.segmentSize, for: .caller) else { break }
            _ = try await store.purge(.tag("t\(number)"), now: .at(0))
        }
        return (store, held)
    }

    private static func remove(from store: DiskStore) async -> [StoreError.Code?] {
        [
            await errorCode { _ = try await store.purge(.tag("tagged"), now: .at(0)) },
            await errorCode { _ = try await store.purge(.keyPrefix(Array("prefixed".utf8)), now: .at(0)) },
            await errorCode { try await store.invalidate(StoreKey("invalid")) },
        ]
    }

    @Test("Removals are allowed, and survive a kill, although bodies that are read leave no room")
    func removalsWithoutRoom() async throws {
        let files = SimulatedFileSystem(remembersUnsynced: false)
        let (store, held) = try await Self.exhausted(files)
        #expect(await Self.remove(from: store) == [nil, nil, nil])
        #expect(files.peakBytes <= 1 << 20)
        for body in held { #expect(try await body.read(from: 89_999, upTo: 5).array == [1]) }
        let again = try await Self.open(files.crashed(.process))
        for key in Self.removals { #expect(try await again.get(key).isEmpty, "\(key)") }
        await again.close()
        await store.close()
    }

    @Test("Removals for which even the reserve has no room are in force, say so, and are written at the close")
    func postponedRemovals() async throws {
        let files = SimulatedFileSystem(remembersUnsynced: false)
        let (store, held) = try await Self.exhausted(files)
        let tagged = try #require(try await store.get("tagged").first)
        var refused: StoreError?
        for number in 0..<1_000 where refused == nil {
            do throws(StoreError) {
                _ = try await store.purge(.tag("u\(number)"), now: .at(0))
            } catch {
                refused = error
            }
        }
        #expect(refused?.code == .noSpace && refused?.message.contains("What was removed is gone") == true)
        #expect(await Self.remove(from: store) == [.noSpace, .noSpace, .noSpace])
        // To ask again, or in another way, records them or fails as well.
        for code in [
            await errorCode { try await store.remove(tagged) },
            await errorCode { _ = try await store.purge(.matching { _ in false }, now: .at(0)) },
        ] {
            #expect(code == .noSpace || !store.engine.remover.hasPendingTombstones)
        }
        for key in Self.removals { #expect(try await store.get(key).isEmpty, "\(key)") }
        for body in held { #expect(try await body.read(from: 89_999, upTo: 5).array == [1]) }
        await store.close()
        #expect(files.peakBytes <= 1 << 20)
        let again = try await Self.open(files)
        for key in Self.removals { #expect(try await again.get(key).isEmpty, "\(key)") }
        await again.close()
    }

    @Test("However many removals could not be written, puts find room again once the bodies are closed")
    func queuedRemovals() async throws {
        let files = SimulatedFileSystem(remembersUnsynced: false)
        var (store, held) = try await Self.exhausted(files)
        for number in 0..<4_000 { _ = try? await store.purge(.tag("u\(number)"), now: .at(0)) }
        _ = await Self.remove(from: store)
        held = []
        for number in 0..<60 { _ = try await store.put("new\(number)", [UInt8](repeating: 2, count: 2_000)) }
        #expect(held.isEmpty)
        for key in Self.removals { #expect(try await store.get(key).isEmpty, "\(key)") }
        await store.close()
        #expect(files.peakBytes <= 1 << 20)
        let again = try await Self.open(files)
        for key in Self.removals { #expect(try await again.get(key).allSatisfy(\.needsValidation), "\(key)") }
        await again.close()
    }

    @Test("Removals that could not be written are written soon after a put, and survive a kill")
    func recordedLater() async throws {
        let files = SimulatedFileSystem(remembersUnsynced: false)
        let store: DiskStore
        do {
            let (exhausted, held) = try await Self.exhausted(files)
            for number in 0..<1_000 {
                if await errorCode({ _ = try await exhausted.purge(.tag("u\(number)"), now: .at(0)) }) != nil { break }
            }
            #expect(await Self.remove(from: exhausted) == [.noSpace, .noSpace, .noSpace])
            #expect(held.count == 8)
            store = exhausted
        }
        _ = try await store.put("later", [1])
        await Self.settle { !store.engine.remover.hasPendingTombstones }
        let again = try await Self.open(files.crashed(.process))
        for key in Self.removals { #expect(try await again.get(key).isEmpty, "\(key)") }
        await again.close()
        await store.close()
    }

    @Test("A purge by predicate removes all that it can although some removals cannot be written")
    func purgeWithoutRoom() async throws {
        let files = SimulatedFileSystem(remembersUnsynced: false)
        let (store, held) = try await Self.exhausted(files)
        for _ in 0..<5_000 { if (try? await store.purge(.tag("used up"), now: .at(0))) == nil { break } }
        _ = try? await store.purge(.matching { _ in true }, now: .at(0))
        for key in Self.removals { #expect(try await store.get(key).isEmpty, "\(key)") }
        #expect(held.count == 8)
        await store.close()
    }

    @Test("A device that never finishes a sync holds up one segment: the rest is reclaimed, and nothing is refused")
    func slowSync() async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let files = HangingFiles()
        let store = try await DiskStore.open(
            directory: directory.path,
            capacity: 1 << 20,
            fileSystem: files,
            now: .at(0)
        )
        files.hangSyncs()
        let before = files.syncs.count
        // Bodies in segments and beside them: such segments are cut short and removed, where full ones are used again.
        for number in 0..<1_000 {
            try await store.put("k\(number)", [UInt8](repeating: 1, count: number % 2 == 0 ? 7_000 : 12_000))
        }
        #expect(files.syncs.count == before + 1)
        #expect(store.statistics.entriesEvicted > 300)
        files.goOn()
        await store.close()
        let again = try await DiskStore.open(directory: directory.path, capacity: 1 << 20, now: .at(0))
        #expect(try await again.get("k999").count == 1)
        await again.close()
    }

    @Test("An abandoned body is removed from the disk and from the count", arguments: [true, false])
    func abandoned(drops: Bool) async throws {
        let files = SimulatedFileSystem(remembersUnsynced: false)
        let store = try await Self.open(files)
        var writer: (any EntryWriter)? = try await Self.writer(store, "a")
        try await writer?.append(ByteChunk([UInt8](repeating: 1, count: 150_000)))
        let blob = try #require(files.paths.first { $0.hasSuffix(".blob") })
        #expect(files.contents(of: blob)?.count == 131_072, "two whole chunks are written, the rest waits")
        if !drops { writer?.abandon() }
        writer = nil
        await Self.settle { !files.paths.contains(blob) && Self.agrees(store, files) }
        #expect(Self.agrees(store, files))
        #expect(!files.paths.contains { $0.hasSuffix(".blob") })
        await store.close()
    }

    @Test("A body of 200 MiB streams through, is read while it is written, and is counted to the byte")
    func longBody() async throws {
        let files = SimulatedFileSystem(remembersUnsynced: false)
        let store = try await DiskStore.open(
            directory: "/store",
            capacity: 512 << 20,
            maximumEntrySize: 256 << 20,
            fileSystem: files,
            now: .at(0)
        )
        let piece = ByteChunk((0..<(1 << 20)).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 / 7) })
        let writer = try await Self.writer(store, "long")
        let follower = writer.follow()
        for number in 0..<200 {
            try await writer.append(piece)
            let blob = files.paths.first { $0.hasSuffix(".blob") }.flatMap { path in
                try? files.attributes(of: path).size
            }
            // All but the last chunk has left the memory of the writer.
            #expect((blob ?? 0) >= (number + 1) << 20 - 2 * 65_536)
            let part = try await follower.read(from: number << 20 + 12_345, upTo: 1_000)
            #expect(part.array == piece[12_345..<(12_345 + part.count)].array)
        }
        let entry = try await writer.commit(nil, now: .at(0))
        #expect(entry.bodyLength == 200 << 20)
        let body = try await store.body(of: entry)
        var offset = 0
        while offset < entry.bodyLength {
            let part = try await body.read(from: offset, upTo: 1 << 20)
            // The store checks every byte; here a few of each part must be the right ones.
            let start = offset % piece.count
            let count = min(part.count, piece.count - start)
            let sample = min(64, count)
            guard sample > 0, part[0..<sample].array == piece[start..<(start + sample)].array else { break }
            offset += count
        }
        #expect(offset == 200 << 20)
        await store.close()
    }

    @Test("A body removed while it is opened is not kept open")
    func removedWhileOpened() async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let files = HangingFiles()
        let store = try await DiskStore.open(
            directory: directory.path,
            capacity: 8 << 20,
            fileSystem: files,
            now: .at(0)
        )
        let entry = try await store.put("a", [UInt8](repeating: 1, count: 400_000))
        let header = try #require(try await store.engine.lookup.source(of: entry)).header
        let blobs = store.engine.blobs
        files.afterOpening.withLock {
            $0 = { path in
                guard path.hasSuffix(".blob") else { return }
                blobs.remove(header.bodyWord, bytes: SpaceQuota.blocks(header.storedBlobBytes))
            }
        }
        var body: (any StoredBody)? = try await store.body(of: entry)
        #expect(try await body?.read(from: 0, upTo: 1).count == 1)
        body = nil
        await Self.settle { store.engine.quota.held == 0 }
        #expect(store.engine.quota.held == 0)
        await store.close()
    }
}
