// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastStorage
import HoldfastTesting
import Testing

@Suite("Store laws: writers and followers", .timeLimit(.minutes(10)))
struct WriterLawTests {
    private func writer(_ store: any CacheStore, expectedLength: Int? = nil) async throws -> any EntryWriter {
        try await store.write(
            StoreKey("a"),
            variant: StoreKey(""),
            description: EntryDescription("first"),
            expectedLength: expectedLength,
            now: .at(0)
        )
    }

    @Test("Nothing shows before the commit, which may bring another description", arguments: StoreMaker.all)
    func commit(maker: StoreMaker) async throws {
        try await maker.with { fixture in
            let writer = try await writer(fixture.store)
            try await writer.append(ByteChunk([1]))
            #expect(try await fixture.store.get("a").isEmpty)
            let entry = try await writer.commit(EntryDescription("second"), now: .at(3))
            #expect(entry.description.text == "second" && entry.storedAt == .at(3))
            #expect(try await fixture.store.get("a") == [entry])
        }
    }

    @Test("An abandoned or dropped writer leaves nothing", arguments: StoreMaker.all, [true, false])
    func abandon(maker: StoreMaker, drops: Bool) async throws {
        try await maker.with { fixture in
            let store = fixture.store
            let kept = try await store.put("a", [7])
            // Freed space may come back a moment later on the store's own threads, which another write waits for.
            let before = store.statistics.bytesUsed
            var inFlight: (any EntryWriter)? = try await writer(store)
            try await inFlight?.append(ByteChunk([UInt8](repeating: 1, count: 300_000)))
            #expect(store.statistics.bytesUsed > before)
            let body = try #require(inFlight?.follow())
            if drops {
                inFlight = nil
            } else {
                inFlight?.abandon()
                inFlight?.abandon()
                let ended = inFlight
                #expect(await errorCode { try await ended?.append(ByteChunk([1])) } == .abandoned)
                #expect(await errorCode { _ = try await ended?.commit(nil, now: .at(0)) } == .abandoned)
                inFlight = nil
            }
            #expect(await errorCode { _ = try await body.whole() } == .abandoned)
            #expect(try await store.get("a") == [kept])
        }
    }

    @Test("An entry that cannot fit is refused at once or when it grows too large", arguments: StoreMaker.all)
    func tooLarge(maker: StoreMaker) async throws {
        try await maker.with(capacity: 1 << 20) { fixture in
            let store = fixture.store
            let kept = try await store.put("b", [7])
            #expect(await errorCode { _ = try await writer(store, expectedLength: 1 << 20) } == .tooLarge)
            #expect(await errorCode { _ = try await writer(store, expectedLength: .max) } == .tooLarge)
            let inFlight = try await writer(store, expectedLength: -1)
            let part = ByteChunk([UInt8](repeating: 1, count: 100_000))
            try await inFlight.append(part)
            try await inFlight.append(part)
            #expect(await errorCode { try await inFlight.append(part) } == .tooLarge)
            #expect(await errorCode { _ = try await inFlight.commit(nil, now: .at(0)) } == .abandoned)
            #expect(try await store.get("b") == [kept])
        }
    }

    @Test("Followers read all bytes in order, each at its own pace", arguments: StoreMaker.all, [1, 2, 3] as [UInt64])
    func follow(maker: StoreMaker, seed: UInt64) async throws {
        try await maker.with { fixture in
            var generator = SeededGenerator(seed: seed)
            let bytes = generator.bytes(300_000)
            let inFlight = try await writer(fixture.store)
            try await withThrowingTaskGroup(of: [UInt8].self) { group in
                var start = 0
                while start < bytes.count {
                    if group.isEmpty || Bool.random(using: &generator) {
                        let body = inFlight.follow()
                        let piece = Int.random(in: 1_000...100_000, using: &generator)
                        group.addTask { try await body.whole(piece: piece) }
                    }
                    let count = min(bytes.count - start, Int.random(in: 1...70_000, using: &generator))
                    try await inFlight.append(ByteChunk(Array(bytes[start..<(start + count)])))
                    start += count
                }
                let last = inFlight.follow()
                #expect(last.length == nil)
                #expect(try await last.read(from: 5, upTo: 3).array == Array(bytes[5..<8]))
                _ = try await inFlight.commit(nil, now: .at(0))
                #expect(last.length == bytes.count)
                group.addTask { try await last.whole() }
                for try await read in group { #expect(read == bytes) }
            }
        }
    }

    @Test("A cancelled follower stops waiting, the others go on", arguments: StoreMaker.all)
    func cancelledFollower(maker: StoreMaker) async throws {
        try await maker.with { fixture in
            let inFlight = try await writer(fixture.store)
            let body = inFlight.follow()
            let cancelled = Task { await errorCode { _ = try await body.read(from: 0, upTo: 1) } }
            let patient = Task { try await body.whole() }
            cancelled.cancel()
            #expect(await cancelled.value == .cancelled)
            try await inFlight.append(ByteChunk([1, 2]))
            _ = try await inFlight.commit(nil, now: .at(0))
            #expect(try await patient.value == [1, 2])
        }
    }

    @Test("An open body outlives its entry", arguments: StoreMaker.all)
    func openBody(maker: StoreMaker) async throws {
        try await maker.with { fixture in
            let store = fixture.store
            var generator = SeededGenerator(seed: 4)
            let bytes = generator.bytes(150_000)
            let body = try await store.body(of: try await store.put("a", bytes))
            try await store.put("a", [1])
            #expect(try await body.whole() == bytes)
            try await store.purge(.all, now: .at(0))
            #expect(try await body.whole() == bytes)
        }
    }
}
