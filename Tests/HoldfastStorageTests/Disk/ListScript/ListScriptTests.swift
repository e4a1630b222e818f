// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastTesting
import Testing

@testable import HoldfastStorage

/// The script in `docs` and the store itself must see the same entries in the same files.
@Suite("docs/operating/list-store.py on the files of a DiskStore", .timeLimit(.minutes(20)))
struct ListScriptTests {
    private static let script: Comment =
        "python3 or docs/operating/list-store.py is missing: the documented format is not tried out"

    private static func open(_ path: String) async throws -> DiskStore {
        try await DiskStore.open(directory: path, capacity: 2 << 20, now: .at(0))
    }

    /// Every kind of record that a store writes.
    private static func fill(_ store: DiskStore) async throws {
        var generator = SeededGenerator(seed: 31)
        // More than fits, so that segments are reclaimed and their files recycled.
        for number in 0..<90 {
            let size = number % 5 == 0 ? 28_000 : Int.random(in: 0...12_000, using: &generator)
            try await store.put("old/\(number % 70)", generator.bytes(size), now: .at(Int64(number)))
            if number % 3 == 0 { _ = try await store.get("old/\(number / 2)") }
        }
        try await store.put("inline", generator.bytes(300), EntryDescription("m", tags: ["b", "a"]), now: .at(5))
        try await store.put("empty", [])
        try await store.put("blob", generator.bytes(150_000))
        try await store.put("even blob", generator.bytes(131_040))
        for variant in ["one", "two", "three"] { try await store.put("variants", variant: variant, [1], now: .at(6)) }
        let pinned = try await store.put("pinned", [1, 2])
        #expect(try await store.setPinned(true, pinned))
        let loose = try await store.put("pinned no more", [1, 2])
        #expect(try await store.setPinned(true, loose))
        let held = try #require(try await store.get("pinned no more").first)
        #expect(try await store.setPinned(false, held))
        let stale = try await store.put("freshened", generator.bytes(4_000), EntryDescription("old"))
        try await store.replaceDescription(of: stale, with: EntryDescription("fresher", tags: ["c"]), now: .at(7))
        try await store.put("replaced", [1])
        try await store.put("replaced", [1, 2, 3], now: .at(8))
        try await store.remove(try await store.put("removed", [1]))
        try await store.put("removed after another", [1])
        try await store.remove(try await store.put("removed after another", [2]))
        try await store.remove(try await store.put("variants", variant: "four", [1]))
        try await store.put("invalidated", variant: "v", [1])
        try await store.put("invalidated", variant: "w", [1])
        try await store.invalidate(StoreKey("invalidated"))
        try await store.put("invalidated", variant: "since", [1])
        try await store.put("tagged", [1], EntryDescription("m", tags: ["news", "x"]))
        try await store.purge(.tag("news"), now: .at(9))
        try await store.put("tagged since", [1], EntryDescription("m", tags: ["news", "x"]))
        for name in ["/a/1", "/a/2", "/b/1"] { try await store.put(name, [1]) }
        try await store.purge(.keyPrefix(Array("/a/".utf8)), now: .at(9))
        try await store.put("/a/2", [1, 2])
        _ = try await store.purge(.matching { $0.key == StoreKey("empty") }, now: .at(9))
    }

    /// The lines that the script owes for what a store lists.
    private static func lines(_ store: DiskStore) async throws -> [String] {
        var lines: [String] = []
        var cursor: StoreCursor?
        repeat {
            let page = try await store.list(after: cursor, limit: 100, now: .at(10))
            lines += page.listed.map { line($0.entry) }
            cursor = page.next
        } while cursor != nil
        return lines.sorted()
    }

    private static func line(_ entry: StoredEntry) -> String {
        func text(_ key: StoreKey) -> String { "b'\(String(decoding: key.bytes, as: UTF8.self))'" }
        let tags = entry.description.tags.sorted().map { "b'\($0)'" }.joined(separator: ", ")
        return "key=\(text(entry.key)) variant=\(text(entry.variant)) version=\(entry.version.number) "
            + "stored=\(entry.storedAt.milliseconds) body=\(entry.bodyLength) "
            + "metadata=\(entry.description.metadata.count) tags=[\(tags)] sealed=0 "
            + "pinned=\(entry.isPinned ? 1 : 0) suspect=\(entry.needsValidation ? 1 : 0)"
    }

    /// Gets the work that the store's threads still have behind it, so that files stand still.
    private static func settle(_ store: DiskStore) async throws {
        for lane in [IOThreads.Lane.writes, .changes, .syncs, .changes] {
            try await store.engine.threads.run(lane, isUrgent: false) {}
        }
    }

    @Test("A closed store", .enabled(if: ListStoreScriptTests.isHere, script))
    func closed() async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let store = try await Self.open(directory.path)
        try await Self.fill(store)
        let expected = try await Self.lines(store)
        await store.close()
        #expect(expected.count > 20 && expected.count < 88)
        #expect(try ListStoreScriptTests.list(directory.path) == expected)
        let again = try await Self.open(directory.path)
        #expect(try await Self.lines(again) == expected)
        await again.close()
    }

    @Test(
        "A store after a crash: copied while it was open",
        .enabled(if: ListStoreScriptTests.isHere, script)
    )
    func crashed() async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let store = try await Self.open(directory.path)
        try await Self.fill(store)
        let expected = try await Self.lines(store)
        try await Self.settle(store)
        let copy = directory.path + ".copy"
        defer { try? FileManager.default.removeItem(atPath: copy) }
        try FileManager.default.copyItem(atPath: directory.path, toPath: copy)
        try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: copy)
        #expect(try ListStoreScriptTests.list(copy) == expected)
        let again = try await Self.open(copy)
        #expect(try await Self.lines(again) == expected)
        await again.close()
        await store.close()
    }

    @Test(
        "A store after a power loss: everything is suspect except what was validated",
        .enabled(if: ListStoreScriptTests.isHere, script)
    )
    func suspect() async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let store = try await Self.open(directory.path)
        try await store.put("a", [1])
        try await store.put("b", [1])
        let pinned = try await store.put("pinned", [1])
        let format = directory.path + "/FORMAT"
        await store.close()
        var bytes = try Data(contentsOf: URL(fileURLWithPath: format))
        var state = try #require(FormatFile(Array(bytes)))
        (state.format.isClean, state.format.bootIdentity) = (false, [1, 2, 3])
        bytes = Data(state.encode())
        try bytes.write(to: URL(fileURLWithPath: format))
        let again = try await Self.open(directory.path)
        let stale = try #require(try await again.get("b").first)
        try await again.replaceDescription(of: stale, with: EntryDescription("validated"), now: .at(1))
        let held = try #require(try await again.get("pinned").first)
        #expect(held.version == pinned.version)
        // A change of a pin makes a record of a new order, and no better known for it.
        #expect(try await again.setPinned(true, held))
        let expected = try await Self.lines(again)
        await again.close()
        #expect(expected.map { $0.hasSuffix("suspect=1") } == [true, false, true])
        #expect(try ListStoreScriptTests.list(directory.path) == expected)
    }
}
