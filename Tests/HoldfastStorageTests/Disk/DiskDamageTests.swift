// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastStorage
import HoldfastTestKit
import HoldfastTesting
import Testing

/// `HOLDFAST_LONG_TESTS=1` damages every place; otherwise every fifth, others where the process was killed than where it closed.
@Suite("DiskStore: damage found when opening", .timeLimit(.minutes(20)))
struct DiskDamageTests {
    /// A small store with one of everything, and how its process ended.
    private struct Original {
        let files: SimulatedFileSystem
        let bodies: [String: [UInt8]]
        let isClosed: Bool
    }

    /// Keys of which something lies on the disk that is not to be seen.
    private static let gone = ["removed", "invalid", "tagged", "prefix/1"]
    private static let alive = ["inline", "blob", "two", "pinned", "written over"]

    private static func open(_ files: SimulatedFileSystem) async throws -> DiskStore {
        try await DiskStore.open(directory: "/store", capacity: 1 << 20, fileSystem: files, now: .at(0))
    }

    private static func original(isClosed: Bool) async throws -> Original {
        var generator = SeededGenerator(seed: 4)
        let files = SimulatedFileSystem(remembersUnsynced: false)
        let store = try await open(files)
        var bodies: [String: [UInt8]] = [:]
        func put(_ key: String, _ variant: String, _ count: Int, tags: Set<String> = []) async throws {
            let body = generator.bytes(count)
            let text = "\(key) \(variant) \(count)"
            bodies[text] = body
            try await store.put(key, variant: variant, body, EntryDescription(text, tags: tags))
        }
        try await put("inline", "", 40)
        try await put("blob", "", 9_000)
        try await put("two", "1", 30)
        try await put("two", "2", 31)
        try await put("pinned", "", 20)
        _ = try await store.setPinned(true, #require(try await store.get("pinned").first))
        for count in [21, 22, 23] { try await put("written over", "", count) }
        try await put("removed", "", 24)
        try await store.remove(#require(try await store.get("removed").first))
        try await put("invalid", "", 25)
        try await store.invalidate(StoreKey("invalid"))
        try await put("tagged", "", 26, tags: ["t"])
        try await store.purge(.tag("t"), now: .at(0))
        try await put("prefix/1", "", 27)
        try await store.purge(.keyPrefix(Array("prefix/".utf8)), now: .at(0))
        if isClosed {
            await store.close()
            return Original(files: files.crashed(.process), bodies: bodies, isClosed: true)
        }
        let left = files.crashed(.process)
        await store.close()
        return Original(files: left, bodies: bodies, isClosed: false)
    }

    /// What a damaged store served.
    private struct Served {
        var whole = 0
        var unasked: [String] = []
    }

    /// Opens the damaged store, and compares whatever it serves with what was written.
    private static func check(_ files: SimulatedFileSystem, _ original: Original, _ comment: String) async throws
        -> Served
    {
        var served = Served()
        let store = try await open(files)
        for key in alive + gone {
            // A record that is damaged is a miss once it was met; then nothing of it is left.
            let entries: [StoredEntry]
            do { entries = try await store.get(key) } catch {
                #expect(error.code == .corrupt, "\(comment): \(key): \(error)")
                #expect(store.statistics.entriesCorrupt > 0, "\(comment)")
                entries = try await store.get(key)
            }
            for entry in entries {
                let body = try #require(original.bodies[entry.description.text], "\(comment): never written")
                #expect(entry.description.text.hasPrefix(key + " "), "\(comment)")
                do {
                    #expect(try await store.wholeBody(of: entry) == body, "\(comment): \(key)")
                    served.whole += 1
                } catch {
                    #expect(error.code == .corrupt, "\(comment): \(error)")
                    let left = try await store.get(key).contains { $0.version == entry.version }
                    #expect(!left, "\(comment): a damaged body stays")
                    continue
                }
                let isOld = key == "written over" && entry.bodyLength != 23
                if gone.contains(key) || isOld, !entry.needsValidation { served.unasked.append(entry.description.text) }
            }
        }
        try await store.put("new", [1])
        #expect(try await store.get("new").count == 1, "\(comment)")
        await store.close()
        return served
    }

    private static func targets(_ original: Original) -> [(path: String, size: Int)] {
        original.files.paths.filter { !$0.hasSuffix("/lock") }.map { path in
            (path, original.files.contents(of: path)?.count ?? 0)
        }
    }

    /// Where the bytes of a file end that matter: behind them a segment that is not sealed has nothing but room.
    private static func used(_ path: String, _ original: Original) -> Int {
        let bytes = original.files.contents(of: path) ?? []
        return min(bytes.count, (bytes.lastIndex { $0 != 0 } ?? 0) + 33)
    }

    /// The bytes that matter, and some of the zeros between the parts of FORMAT.
    private static func places(in path: String, _ original: Original) -> [Int] {
        let bytes = original.files.contents(of: path) ?? []
        return (0..<used(path, original)).filter { !path.hasSuffix("FORMAT") || bytes[$0] != 0 || $0 % 61 == 0 }
    }

    /// The places to try.
    private static func tried(_ places: [Int], isClosed: Bool) -> [Int] {
        LongTests.areOn ? places : stride(from: isClosed ? 0 : 2, to: places.count, by: 5).map { places[$0] }
    }

    @Test("Without damage everything is there", arguments: [true, false])
    func undamaged(isClosed: Bool) async throws {
        let original = try await Self.original(isClosed: isClosed)
        let served = try await Self.check(original.files.crashed(.process), original, "whole")
        #expect(served.whole == 6 && served.unasked.isEmpty)
    }

    @Test(
        "With any byte flipped it opens, serves no wrong byte, and what comes back needs validation",
        arguments: [true, false]
    )
    func flips(isClosed: Bool) async throws {
        let original = try await Self.original(isClosed: isClosed)
        for (path, _) in Self.targets(original) {
            // The bytes of a body are all alike: the ends of a blob and samples of what is between.
            let size = Self.used(path, original)
            let places =
                path.hasSuffix(".blob")
                ? Array(0..<32) + stride(from: 32, to: size - 64, by: 61) + ((size - 64)..<size)
                : Self.places(in: path, original)
            for place in Self.tried(places, isClosed: isClosed)
            where place < original.files.contents(of: path)?.count ?? 0 {
                let files = original.files.crashed(.process)
                let bit = (place &* 5 &+ place / 8) % 8
                #expect(files.flipBit(of: path, at: place, bit: bit))
                let served = try await Self.check(files, original, "\(path) byte \(place) bit \(bit)")
                // One flip costs what it touches: nothing for FORMAT, one record or the trust in all for a segment, one blob.
                let least = path.hasSuffix("FORMAT") ? 6 : 5
                #expect(served.whole >= least, "\(path) byte \(place) left \(served.whole)")
                // In a segment that a crash left open, a record that does not hold its checks was never acknowledged as far as
                // anyone can tell: damage there, of all places and before the next opening, may cost a removal.
                if isClosed { #expect(served.unasked.isEmpty, "\(path) byte \(place): \(served.unasked)") }
                #expect(served.unasked.count <= 1, "\(path) byte \(place): \(served.unasked)")
            }
        }
    }

    @Test(
        "With any file cut to any length it opens, serves no wrong byte, and what comes back needs validation",
        arguments: [true, false]
    )
    func truncations(isClosed: Bool) async throws {
        let original = try await Self.original(isClosed: isClosed)
        for (path, size) in Self.targets(original) {
            let counts = Array(stride(from: 0, to: Self.used(path, original), by: path.hasSuffix(".seg") ? 1 : 61))
            for count in Self.tried(counts, isClosed: isClosed) + [size - 1] where count < size {
                let files = original.files.crashed(.process)
                #expect(files.setSize(of: path, to: count))
                let served = try await Self.check(files, original, "\(path) cut to \(count)")
                #expect(served.unasked.isEmpty, "\(path) cut to \(count): \(served.unasked)")
            }
        }
    }
}
