// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastStorage
import HoldfastTesting
import Testing

@Suite("DiskStore: damaged files", .timeLimit(.minutes(10)))
struct DiskDamageTests {
    private struct Original {
        let directory: TemporaryDirectory
        let files: [String: [UInt8]]
        let entries: [String: [(entry: StoredEntry, body: [UInt8])]]
    }

    private func makeOriginal() async throws -> Original {
        let directory = try TemporaryDirectory()
        let store = try await openStore(directory)
        try await store.put("a", variant: "1", Array("one body".utf8), EntryDescription("m1", tags: ["t"]))
        try await store.put("a", variant: "2", Array("another".utf8), EntryDescription("m2"))
        try await store.put("b", [], EntryDescription("m3"))
        try await store.put("c", Array("the third of them".utf8), EntryDescription("m4"))
        var entries: [String: [(entry: StoredEntry, body: [UInt8])]] = [:]
        for key in ["a", "b", "c"] {
            for entry in try await store.get(key) {
                entries[key, default: []].append((entry, try await store.wholeBody(of: entry)))
            }
        }
        await store.close()
        var files: [String: [UInt8]] = [:]
        for name in directory.files() where name != "lock" { files[name] = try directory.bytes(of: name) }
        return Original(directory: directory, files: files, entries: entries)
    }

    /// Opens the damaged store and compares whatever it serves; returns how many entries were served whole.
    private func check(_ original: Original, _ comment: String) async throws -> Int {
        let store = try await openStore(original.directory)
        var served = 0
        for (key, expected) in original.entries {
            for entry in try await store.get(key) {
                let match = expected.first { $0.entry == entry }
                #expect(match != nil, "\(comment): an entry that was never written")
                do {
                    #expect(try await store.wholeBody(of: entry) == match?.body, "\(comment)")
                    served += 1
                } catch let error as StoreError {
                    #expect(error.code == .corrupt, "\(comment): \(error)")
                    #expect(try await !store.get(key).contains(entry), "\(comment): a corrupt entry stays")
                }
            }
        }
        try await store.put("new", [1])
        #expect(try await store.get("new").count == 1)
        await store.close()
        return served
    }

    /// Makes the directory what it was, one file excepted, which gets `bytes`.
    private func restore(_ original: Original, _ name: String, _ bytes: [UInt8]) throws {
        let files = POSIXFileSystem()
        let root = original.directory.path
        for folder in ["k", "b"] {
            for file in try files.list("\(root)/\(folder)") { try files.remove("\(root)/\(folder)/\(file)") }
        }
        try? files.remove("\(root)/FORMAT")
        for (file, content) in original.files {
            let open = try files.open("\(root)/\(file)", .create)
            defer { files.close(open) }
            try files.write(ByteChunk(file == name ? bytes : content), to: open, at: 0)
        }
    }

    @Test("Every byte flipped in turn: the store opens and serves no wrong byte")
    func flippedBytes() async throws {
        let original = try await makeOriginal()
        defer { original.directory.remove() }
        for (name, bytes) in original.files.sorted(by: { $0.key < $1.key }) {
            for place in bytes.indices {
                var damaged = bytes
                damaged[place] ^= 1 << UInt8(place % 8)
                try restore(original, name, damaged)
                let served = try await check(original, "\(name) byte \(place)")
                // Damage costs what it touches: all for FORMAT, one key for a key's file, one entry for a body.
                let expected = name == "FORMAT" ? 0...0 : name.hasPrefix("k") ? 2...3 : 3...3
                #expect(expected.contains(served), "\(name) byte \(place) left \(served)")
            }
        }
    }

    @Test("Every length of every file: the store opens and serves no wrong byte")
    func truncatedFiles() async throws {
        let original = try await makeOriginal()
        defer { original.directory.remove() }
        for (name, bytes) in original.files.sorted(by: { $0.key < $1.key }) {
            for count in bytes.indices {
                try restore(original, name, Array(bytes.prefix(count)))
                _ = try await check(original, "\(name) cut to \(count)")
            }
            try restore(original, name, bytes)
            #expect(try await check(original, "\(name) whole again") == 4)
        }
    }

    @Test("A body that is damaged under an open store is refused, counted and removed")
    func damageWhileOpen() async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let store = try await openStore(directory)
        var generator = SeededGenerator(seed: 8)
        let bytes = generator.bytes(200_000)
        let entry = try await store.put("a", bytes)
        try await store.put("b", [1])
        let name = try #require(
            directory.files().filter { $0.hasPrefix("b/") }.max { left, right in
                ((try? directory.bytes(of: left).count) ?? 0) < ((try? directory.bytes(of: right).count) ?? 0)
            }
        )
        var damaged = bytes
        damaged[150_000] ^= 1
        try directory.write(damaged, to: name)
        let body = try await store.body(of: entry)
        #expect(try await body.read(from: 0, upTo: 131_072).array == Array(bytes.prefix(131_072)))
        #expect(await errorCode { _ = try await body.read(from: 140_000, upTo: 10) } == .corrupt)
        #expect(try await store.get("a").isEmpty)
        #expect(store.statistics.entriesCorrupt == 1)
        #expect(try await store.get("b").count == 1)
        await store.close()
    }
}
