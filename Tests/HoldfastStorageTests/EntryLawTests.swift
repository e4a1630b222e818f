// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastStorage
import HoldfastTesting
import Testing

@Suite("Store laws: entries", .timeLimit(.minutes(10)))
struct EntryLawTests {
    @Test("A committed entry is found with its description and body", arguments: StoreMaker.all)
    func putAndGet(maker: StoreMaker) async throws {
        try await maker.with { fixture in
            let store = fixture.store
            #expect(try await store.get("a").isEmpty)
            let description = EntryDescription("head", uselessAfter: .at(99), tags: ["t", "u"])
            let put = try await store.put("a", variant: "v", Array("hello".utf8), description, now: .at(7))
            let found = try #require(try await store.get("a").first)
            #expect(found == put)
            #expect(found.key == StoreKey("a") && found.variant == StoreKey("v"))
            #expect(found.description == description)
            #expect(found.bodyLength == 5 && found.storedAt == .at(7) && !found.isPinned)
            #expect(try await store.wholeBody(of: found) == Array("hello".utf8))
            #expect(try await store.get("b").isEmpty)
            #expect(store.peek(StoreKey("b"), now: .at(0))?.isEmpty == true)
            #expect(store.peek(StoreKey("a"), now: .at(0)) == [put])
        }
    }

    @Test(
        "Bodies of every size come back byte for byte",
        arguments: StoreMaker.all,
        [0, 1, 4_095, 16_384, 65_535, 65_536, 65_537, 200_001]
    )
    func bodySizes(maker: StoreMaker, size: Int) async throws {
        try await maker.with { fixture in
            var generator = SeededGenerator(seed: UInt64(size))
            let bytes = generator.bytes(size)
            let writer = try await fixture.store.write(
                StoreKey("k"),
                variant: StoreKey(""),
                description: EntryDescription("m"),
                expectedLength: size,
                now: .at(0)
            )
            var start = 0
            while start < size {
                let count = min(size - start, Int.random(in: 1...30_000, using: &generator))
                try await writer.append(ByteChunk(bytes)[start..<(start + count)])
                start += count
            }
            let entry = try await writer.commit(nil, now: .at(0))
            let body = try await fixture.store.body(of: entry)
            #expect(body.length == size)
            #expect(try await body.whole(piece: 7_001) == bytes)
            #expect(try await body.read(from: size + 5, upTo: 10).isEmpty)
            #expect(try await body.read(from: size / 2, upTo: 10).array == Array(bytes[(size / 2)...].prefix(10)))
            if let whole = body.bytesInMemory { #expect(whole.array == bytes) }
        }
    }

    @Test("Variants of a key are listed newest first and replaced one by one", arguments: StoreMaker.all)
    func variants(maker: StoreMaker) async throws {
        try await maker.with { fixture in
            let store = fixture.store
            for number in 0..<8 { try await store.put("a", variant: "\(number)", [UInt8(number)]) }
            #expect(try await store.get("a").map(\.variant) == (0..<8).reversed().map { StoreKey("\($0)") })
            let old = try #require(try await store.get("a").first { $0.variant == StoreKey("3") })
            let new = try await store.put("a", variant: "3", [33])
            #expect(new.version > old.version)
            let entries = try await store.get("a")
            #expect(entries.count == 8 && entries.first == new)
            #expect(try await store.wholeBody(of: new) == [33])
            #expect(await errorCode { _ = try await store.body(of: old) } == .superseded)
        }
    }

    @Test("A variant too many replaces the oldest that is not pinned", arguments: StoreMaker.all)
    func tooManyVariants(maker: StoreMaker) async throws {
        try await maker.with { fixture in
            let store = fixture.store
            let pinned = try await store.put("a", variant: "pinned", [0])
            #expect(try await store.setPinned(true, pinned))
            for number in 0..<40 { try await store.put("a", variant: "\(number)", [UInt8(number)]) }
            let entries = try await store.get("a")
            #expect((8...16).contains(entries.count))
            #expect(entries.first?.variant == StoreKey("39"))
            #expect(entries.last?.variant == StoreKey("pinned"))
        }
    }

    @Test("A freshened entry keeps its body and bears a higher version", arguments: StoreMaker.all)
    func freshen(maker: StoreMaker) async throws {
        try await maker.with { fixture in
            let store = fixture.store
            try await store.put("a", variant: "other", [9])
            let old = try await store.put("a", [1, 2, 3], EntryDescription("old"), now: .at(1))
            let written = store.statistics.bytesWritten
            let new = try #require(
                try await store.replaceDescription(of: old, with: EntryDescription("new", tags: ["x"]), now: .at(5))
            )
            #expect(new.version > old.version && new.description.text == "new" && new.storedAt == .at(1))
            #expect(store.statistics.bytesWritten == written)
            #expect(try await store.get("a").map(\.version).first == new.version)
            #expect(try await store.get("a").count == 2)
            #expect(try await store.wholeBody(of: new) == [1, 2, 3])
            let again = try await store.replaceDescription(of: old, with: EntryDescription("late"), now: .at(6))
            #expect(again == nil)
            #expect(try await store.get("a").first?.description.text == "new")
        }
    }

    @Test("Removal takes one version of one variant only", arguments: StoreMaker.all)
    func remove(maker: StoreMaker) async throws {
        try await maker.with { fixture in
            let store = fixture.store
            let first = try await store.put("a", variant: "1", [1])
            let second = try await store.put("a", variant: "2", [2])
            let newer = try await store.put("a", variant: "1", [11])
            try await store.remove(first)
            #expect(try await store.get("a") == [newer, second])
            try await store.remove(newer)
            #expect(try await store.get("a") == [second])
            try await store.remove(second)
            #expect(try await store.get("a").isEmpty)
            #expect(store.statistics.entriesRemoved == 2 && store.statistics.entryCount == 0)
        }
    }

    @Test("Too many and too long tags are not kept", arguments: StoreMaker.all)
    func tagBounds(maker: StoreMaker) async throws {
        try await maker.with { fixture in
            let long = String(repeating: "x", count: 1_025)
            let tags = Set((0..<100).map { "tag\($0)" })
            let entry = try await fixture.store.put("a", [], EntryDescription("m", tags: tags.union([long])))
            #expect(entry.description.tags.count == 64)
            #expect(entry.description.tags.isSubset(of: tags))
        }
    }

    @Test("Statistics count look-ups and bytes", arguments: StoreMaker.all)
    func statistics(maker: StoreMaker) async throws {
        try await maker.with(capacity: 1 << 20) { fixture in
            let store = fixture.store
            let entry = try await store.put("a", [1, 2, 3])
            _ = try await store.get("a")
            _ = store.peek(StoreKey("a"), now: .at(0))
            _ = try await store.get("b")
            _ = try await store.wholeBody(of: entry)
            let statistics = store.statistics
            #expect(statistics.lookups == 3 && statistics.lookupsFound == 2)
            #expect(statistics.entriesWritten == 1 && statistics.bytesWritten == 3 && statistics.bytesRead == 3)
            #expect(statistics.entryCount == 1 && statistics.capacity == 1 << 20)
            #expect(statistics.bytesUsed > 3 && statistics.bytesUsed <= statistics.capacity)
            #expect(store.secret.count >= 16)
        }
    }

    @Test("A closed store refuses and can be closed again", arguments: StoreMaker.all)
    func closed(maker: StoreMaker) async throws {
        try await maker.with { fixture in
            let store = fixture.store
            let entry = try await store.put("a", [1])
            let writer = try await store.write(
                StoreKey("b"),
                variant: StoreKey(""),
                description: EntryDescription("m"),
                expectedLength: nil,
                now: .at(0)
            )
            await store.close()
            await store.close()
            #expect(await errorCode { _ = try await store.get("a") } == .closed)
            #expect(await errorCode { _ = try await store.put("c", [1]) } == .closed)
            #expect(await errorCode { _ = try await store.body(of: entry) } == .closed)
            #expect(await errorCode { try await store.invalidate(StoreKey("a")) } == .closed)
            #expect(await errorCode { try await writer.append(ByteChunk([1])) } == .closed)
        }
    }
}
