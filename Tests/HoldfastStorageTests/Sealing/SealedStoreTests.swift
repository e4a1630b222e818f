// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastTesting
import Testing

@testable import HoldfastStorage

/// A disk store that seals what it writes: nothing in clear, keys that change, parts that cannot be moved.
@Suite("An encrypted store", .timeLimit(.minutes(20)))
struct SealedStoreTests {
    private static let capacity = 8 << 20
    private static let key = "https://origin.example/secret-path?q=needle-in-key"
    private static let variant = "accept-language: needle-in-variant"
    private static let tag = "needle-in-tag"
    private static let field = "X-Header: needle-in-field"
    private static let freshenedField = "X-Header: needle-in-freshened-field"
    private static let prefix = "https://origin.example/needle-in-prefix"
    private static let needles = [key, variant, tag, field, freshenedField, prefix]
        .flatMap { [Array($0.utf8), Array($0.utf8.suffix(12))] }

    private static func withDirectory(_ body: (String) async throws -> Void) async throws {
        let parent = FileManager.default.temporaryDirectory.appending(path: "holdfast-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: parent, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: parent) }
        try await body(parent.appending(path: "store").path)
    }

    private static func open(_ directory: String, _ seal: TestSeal?) async throws -> DiskStore {
        try await DiskStore.open(directory: directory, capacity: capacity, seal: seal, now: .at(0))
    }

    /// A body that no other length or place repeats, in text, so that any of its stretches can be looked for.
    private static func body(_ count: Int) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(count + 16)
        while bytes.count < count { bytes += Array("needle-\(count)-\(bytes.count);".utf8) }
        return Array(bytes.prefix(count))
    }

    /// Small, inline, and as a blob of a few chunks.
    private static let lengths = [40, 20_000, 400_000]

    private static func fill(_ store: DiskStore) async throws {
        for count in lengths {
            try await store.put(
                key + "\(count)",
                variant: variant,
                body(count),
                EntryDescription(field, tags: [tag])
            )
        }
    }

    private static func expectFilled(_ store: DiskStore) async throws {
        for count in lengths {
            let entry = try #require(try await store.get(key + "\(count)").first, "\(count)")
            #expect(entry.variant == StoreKey(variant))
            #expect(entry.description.tags == [tag])
            #expect(try await store.wholeBody(of: entry) == body(count))
        }
    }

    private static func files(_ directory: String) throws -> [(path: String, bytes: Data)] {
        let paths = FileManager.default.enumerator(atPath: directory)?.compactMap { $0 as? String } ?? []
        return try paths.sorted().compactMap { path in
            let full = directory + "/" + path
            var isDirectory: ObjCBool = false
            guard FileManager.default.fileExists(atPath: full, isDirectory: &isDirectory), !isDirectory.boolValue
            else { return nil }
            return (path, try Data(contentsOf: URL(filePath: full)))
        }
    }

    /// What of the needles, and of stretches of every body, stands in the directory's files and names.
    private static func found(in directory: String) throws -> [String] {
        let stretches = lengths.flatMap { count in
            stride(from: 0, to: count - 24, by: 16_003).map { Array(body(count)[$0..<$0 + 24]) }
        }
        return try files(directory).flatMap { file in
            (needles + stretches).filter { file.bytes.range(of: Data($0)) != nil || file.path.utf8.elementsEqual($0) }
                .map { "\(file.path): \(String(decoding: $0, as: UTF8.self))" }
        }
    }

    @Test("No file shows a key, variant, tag, field, prefix or piece of a body; without encryption each is visible")
    func nothingInClear() async throws {
        for seal in [TestSeal(), nil] {
            try await Self.withDirectory { directory in
                let store = try await Self.open(directory, seal)
                try await Self.fill(store)
                let entry = try #require(try await store.get(Self.key + "20000").first)
                try await store.replaceDescription(of: entry, with: EntryDescription(Self.freshenedField), now: .at(1))
                _ = try await store.setPinned(true, #require(try await store.get(Self.key + "400000").first))
                try await store.purge(.keyPrefix(Array(Self.prefix.utf8)), now: .at(2))
                let whileOpen = try Self.found(in: directory)
                await store.close()
                let closed = try Self.found(in: directory)
                if seal == nil {
                    #expect(closed.count > Self.needles.count)
                } else {
                    #expect(whileOpen.isEmpty, "\(whileOpen.prefix(5))")
                    #expect(closed.isEmpty, "\(closed.prefix(5))")
                    #expect(try Self.files(directory).map(\.bytes.count).reduce(0, +) > 420_000)
                }
            }
        }
    }

    @Test("Encrypted entries are complete after a restart")
    func restart() async throws {
        try await Self.withDirectory { directory in
            let store = try await Self.open(directory, TestSeal())
            try await Self.fill(store)
            try await Self.expectFilled(store)
            await store.close()
            let again = try await Self.open(directory, TestSeal())
            try await Self.expectFilled(again)
            #expect(again.statistics.entriesCorrupt == 0)
            await again.close()
        }
    }

    @Test(
        "After a key change old entries can be read; freshened ones use the new key, and their blobs stay readable"
    )
    func rotation() async throws {
        try await Self.withDirectory { directory in
            let old = try await Self.open(directory, TestSeal(1, key: 11))
            try await Self.fill(old)
            await old.close()
            let rotated = try await Self.open(directory, TestSeal(2, keys: [1: 11, 2: 22]))
            try await Self.expectFilled(rotated)
            for count in Self.lengths {
                let entry = try #require(try await rotated.get(Self.key + "\(count)").first)
                let description = EntryDescription("freshened", tags: [Self.tag])
                #expect(try await rotated.replaceDescription(of: entry, with: description, now: .at(1)) != nil)
            }
            try await Self.expectFilled(rotated)
            await rotated.close()
            let reopened = try await Self.open(directory, TestSeal(2, keys: [1: 11, 2: 22]))
            try await Self.expectFilled(reopened)
            #expect(reopened.statistics.entriesCorrupt == 0)
            await reopened.close()
            // Without the old key what lies in records is readable, since the freshening sealed it anew.
            let dropped = try await Self.open(directory, TestSeal(2, key: 22))
            for count in [40, 20_000] {
                let entry = try #require(try await dropped.get(Self.key + "\(count)").first)
                #expect(try await dropped.wholeBody(of: entry) == Self.body(count))
            }
            await dropped.close()
        }
    }

    @Test("An unavailable key gives misses, does not count as damage, and the entries return with the key")
    func unknownKey() async throws {
        try await Self.withDirectory { directory in
            let store = try await Self.open(directory, TestSeal(1, key: 11))
            try await Self.fill(store)
            await store.close()
            let without = try await Self.open(directory, TestSeal(2, key: 22))
            for count in Self.lengths {
                #expect(try await without.get(Self.key + "\(count)").isEmpty)
            }
            #expect(without.statistics.entriesCorrupt == 0)
            try await without.put("new", [1, 2, 3])
            await without.close()
            let with = try await Self.open(directory, TestSeal(2, keys: [1: 11, 2: 22]))
            try await Self.expectFilled(with)
            #expect(try await with.wholeBody(of: #require(try await with.get("new").first)) == [1, 2, 3])
            await with.close()
        }
    }

    @Test("Another key under the same number gives misses, never a wrong byte")
    func otherKey() async throws {
        try await Self.withDirectory { directory in
            let store = try await Self.open(directory, TestSeal(1, key: 11))
            try await Self.fill(store)
            await store.close()
            let other = try await Self.open(directory, TestSeal(1, key: 12))
            for count in Self.lengths {
                #expect(await errorCode { _ = try await other.get(Self.key + "\(count)") } == .corrupt)
                #expect(try await other.get(Self.key + "\(count)").isEmpty)
            }
            await other.close()
        }
    }

    @Test("With a seal, unencrypted entries are not used, because anybody may have written them")
    func downgrade() async throws {
        try await Self.withDirectory { directory in
            let clear = try await Self.open(directory, nil)
            try await Self.fill(clear)
            await clear.close()
            let sealed = try await Self.open(directory, TestSeal())
            for count in Self.lengths { #expect(try await sealed.get(Self.key + "\(count)").isEmpty) }
            try await Self.fill(sealed)
            try await Self.expectFilled(sealed)
            await sealed.close()
        }
    }

    @Test("Without a seal, an encrypted entry is a miss")
    func unsealedReader() async throws {
        try await Self.withDirectory { directory in
            let store = try await Self.open(directory, TestSeal())
            try await Self.fill(store)
            await store.close()
            let plain = try await Self.open(directory, nil)
            for count in Self.lengths { #expect(try await plain.get(Self.key + "\(count)").isEmpty) }
            #expect(plain.statistics.entriesCorrupt == 0)
            await plain.close()
        }
    }

    @Test("A purge by tag or prefix removes encrypted entries, also after a restart")
    func purging() async throws {
        try await Self.withDirectory { directory in
            let store = try await Self.open(directory, TestSeal())
            try await Self.fill(store)
            try await store.put(Self.prefix + "/1", [1])
            try await store.put("kept", [2])
            try await store.purge(.tag(Self.tag), now: .at(1))
            try await store.purge(.keyPrefix(Array(Self.prefix.utf8)), now: .at(2))
            await store.close()
            let again = try await Self.open(directory, TestSeal())
            for count in Self.lengths { #expect(try await again.get(Self.key + "\(count)").isEmpty) }
            #expect(try await again.get(Self.prefix + "/1").isEmpty)
            #expect(try await again.get("kept").count == 1)
            await again.close()
        }
    }

    private static func open(_ files: SimulatedFileSystem) async throws -> DiskStore {
        try await DiskStore.open(
            directory: "/store",
            capacity: capacity,
            fileSystem: files,
            seal: TestSeal(),
            now: .at(0)
        )
    }

    @Test("With a seal, a chunk in clear in the file of a large body is not used")
    func clearChunk() async throws {
        let files = SimulatedFileSystem(remembersUnsynced: false)
        let store = try await Self.open(files)
        try await store.put("a", Self.body(400_000))
        await store.close()
        let path = try #require(files.paths.first { $0.hasSuffix(".blob") })
        let number = try #require(FileNumber.number(in: String(path.suffix(21)), suffix: ".blob"))
        var bytes = try #require(files.contents(of: path))
        let forged = [UInt8](repeating: 0x21, count: BlobChunk.payload)
        bytes.replaceSubrange(
            0..<BlobChunk.stride,
            with: forged + BlobChunk.trailer(for: ByteChunk(forged), number: number, index: 0)
        )
        #expect(files.setContents(of: path, to: bytes))
        let again = try await Self.open(files)
        let entry = try #require(try await again.get("a").first)
        #expect(await errorCode { _ = try await again.wholeBody(of: entry) } == .corrupt)
        await again.close()
    }

    @Test(
        "A large body does not open under another entry's head, and no body can be cut to nothing",
        arguments: [true, false]
    )
    func movedBody(isMoved: Bool) async throws {
        let files = SimulatedFileSystem(remembersUnsynced: false)
        let store = try await Self.open(files)
        let count = isMoved ? 300_000 : 1_000
        try await store.put("a", [UInt8](repeating: 1, count: count))
        try await store.put("b", [UInt8](repeating: 2, count: count))
        let mine = try #require(try await store.get("a").first?.source)
        var header = mine.header
        if isMoved {
            header.bodyWord = try #require(try await store.get("b").first?.source).header.bodyWord
        } else {
            (header.bodyLength, header.inlineLength) = (0, 0)
            header.bodyWord = BodySum.of(ByteChunk(), seed: header.order)
        }
        let (path, seed) = (store.engine.log.layout.segment(header.segment), store.engine.log.seed)
        await store.close()
        var bytes = try #require(files.contents(of: path))
        let forged = header.encode(detail: mine.detailBytes, seed: seed)
        let start = mine.row.place.offset
        bytes.replaceSubrange(start..<(start + forged.count), with: forged)
        #expect(files.setContents(of: path, to: bytes))
        let again = try await Self.open(files)
        if isMoved {
            let code = await errorCode {
                for entry in try await again.get("a") { _ = try await again.wholeBody(of: entry) }
            }
            #expect(code == .corrupt)
        } else {
            // One damaged record does not keep a list from the others.
            let listed = try await again.list(after: nil, limit: 10, now: .at(0)).listed
            #expect(listed.map(\.entry.key) == [StoreKey("b")])
            #expect(try await again.get("a").isEmpty)
        }
        await again.close()
    }

    @Test("A prefix purge sealed with a key that was dropped makes nothing suspect that is newer")
    func droppedKeyOfMark() async throws {
        try await Self.withDirectory { directory in
            let old = try await Self.open(directory, TestSeal(1, key: 11))
            try await old.put("old", [1])
            try await old.purge(.keyPrefix(Array(Self.prefix.utf8)), now: .at(1))
            await old.close()
            let first = try await Self.open(directory, TestSeal(2, key: 22))
            try await first.put("new", [2])
            await first.close()
            let second = try await Self.open(directory, TestSeal(2, key: 22))
            #expect(try #require(try await second.get("new").first).needsValidation == false)
            await second.close()
            // With its key again, what is older than the mark has to be confirmed.
            let both = try await Self.open(directory, TestSeal(1, key: 11))
            #expect(try #require(try await both.get("old").first).needsValidation)
            await both.close()
        }
    }

    @Test("A body of another store does not open, although key and order are the same")
    func bodyOfAnotherStore() async throws {
        let files = SimulatedFileSystem(remembersUnsynced: false)
        let others = SimulatedFileSystem(remembersUnsynced: false)
        let (store, other) = (try await Self.open(files), try await Self.open(others))
        try await store.put("a", [UInt8](repeating: 1, count: 1_000))
        try await other.put("b", [UInt8](repeating: 2, count: 1_000))
        let mine = try #require(try await store.get("a").first?.source)
        let foreign = try #require(try await other.get("b").first?.source)
        #expect(mine.header.order == foreign.header.order)
        var header = mine.header
        header.bodyWord = foreign.header.bodyWord
        let (path, seed) = (store.engine.log.layout.segment(header.segment), store.engine.log.seed)
        let forged = header.encode(detail: mine.detailBytes, seed: seed) + foreign.inlineBytes.array
        await store.close()
        await other.close()
        var bytes = try #require(files.contents(of: path))
        let start = mine.row.place.offset
        bytes.replaceSubrange(start..<(start + forged.count), with: forged)
        #expect(files.setContents(of: path, to: bytes))
        let again = try await Self.open(files)
        let code = await errorCode {
            for entry in try await again.get("a") { _ = try await again.wholeBody(of: entry) }
        }
        #expect(code == .corrupt)
        // Its checksum is right, and it is removed and counted like any other damage.
        #expect(try await again.get("a").isEmpty)
        #expect(again.statistics.entriesCorrupt == 1)
        await again.close()
    }
}
