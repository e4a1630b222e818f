// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastStorage
import HoldfastTesting
import Testing

@Suite("Store laws: space", .timeLimit(.minutes(10)))
struct SpaceLawTests {
    @Test("The capacity is never exceeded", arguments: StoreMaker.all, [11, 12, 13] as [UInt64])
    func capacity(maker: StoreMaker, seed: UInt64) async throws {
        let capacity = 400_000
        try await maker.with(capacity: capacity) { fixture in
            let store = fixture.store
            var generator = SeededGenerator(seed: seed)
            var open: [any EntryWriter] = []
            for step in 0..<300 {
                let key = "k\(Int.random(in: 0..<20, using: &generator))"
                switch Int.random(in: 0..<8, using: &generator) {
                case 0...2:
                    let size = Int.random(in: 0...60_000, using: &generator)
                    _ = try? await store.put(key, variant: "\(step % 3)", [UInt8](repeating: 1, count: size))
                case 3:
                    let writer = try? await store.write(
                        StoreKey(key),
                        variant: StoreKey("w"),
                        description: EntryDescription(String(repeating: "m", count: step)),
                        expectedLength: nil,
                        now: .at(Int64(step))
                    )
                    if let writer { open.append(writer) }
                case 4:
                    let size = Int.random(in: 0...40_000, using: &generator)
                    try? await open.randomElement(using: &generator)?.append(
                        ByteChunk([UInt8](repeating: 2, count: size))
                    )
                case 5:
                    if let writer = open.popLast() { _ = try? await writer.commit(nil, now: .at(Int64(step))) }
                case 6:
                    for entry in try await store.get(key) {
                        _ = try await store.setPinned(Bool.random(using: &generator), entry)
                    }
                default:
                    for entry in try await store.get(key) {
                        let text = String(repeating: "d", count: Int.random(in: 0...9_000, using: &generator))
                        _ = try? await store.replaceDescription(
                            of: entry,
                            with: EntryDescription(text),
                            now: .at(Int64(step))
                        )
                    }
                }
                #expect(fixture.heldBytes() <= capacity, "seed \(seed), step \(step)")
                #expect(store.statistics.bytesUsed <= capacity, "seed \(seed), step \(step)")
            }
            #expect(store.statistics.entriesEvicted > 0)
        }
    }

    @Test("What was used longest ago leaves first", arguments: StoreMaker.all)
    func leastRecentlyUsed(maker: StoreMaker) async throws {
        try await maker.with(capacity: 400_000) { fixture in
            let store = fixture.store
            let body = [UInt8](repeating: 1, count: 60_000)
            for number in 0..<5 { try await store.put("k\(number)", body) }
            _ = try await store.get("k0")
            _ = store.peek(StoreKey("k1"), now: .at(0))
            for number in 5..<8 { try await store.put("k\(number)", body) }
            #expect(try await store.get("k0").count == 1)
            #expect(try await store.get("k1").count == 1)
            #expect(try await store.get("k2").isEmpty)
            #expect(try await store.get("k7").count == 1)
        }
    }

    @Test("What is past use leaves before anything else, however lately it was used", arguments: StoreMaker.all)
    func uselessFirst(maker: StoreMaker) async throws {
        try await maker.with(capacity: 400_000) { fixture in
            let store = fixture.store
            let body = [UInt8](repeating: 1, count: 60_000)
            for number in 0..<5 { try await store.put("k\(number)", body) }
            try await store.put("useless", [1], EntryDescription("m", uselessAfter: .at(10)))
            try await store.put("useful", [1], EntryDescription("m", uselessAfter: .at(1_000)))
            _ = try await store.get("useless")
            for number in 5..<7 { try await store.put("k\(number)", body, now: .at(11)) }
            #expect(try await store.get("useless", now: .at(11)).isEmpty)
            #expect(try await store.get("useful", now: .at(11)).count == 1)
        }
    }

    @Test("Pinned entries stay and take at most half of the capacity", arguments: StoreMaker.all)
    func pins(maker: StoreMaker) async throws {
        try await maker.with(capacity: 400_000) { fixture in
            let store = fixture.store
            let body = [UInt8](repeating: 1, count: 60_000)
            var pinned = 0
            for number in 0..<5 {
                let entry = try await store.put("pin\(number)", body)
                if try await store.setPinned(true, entry) { pinned += 1 }
            }
            #expect(pinned == 2 || pinned == 3)
            #expect(try await store.get("pin0").first?.isPinned == true)
            for number in 0..<20 { try await store.put("k\(number)", body) }
            for number in 0..<pinned { #expect(try await store.get("pin\(number)").count == 1) }
            let first = try #require(try await store.get("pin0").first)
            #expect(try await store.setPinned(false, first))
            for number in 0..<20 { try await store.put("k\(number)", body) }
            #expect(try await store.get("pin0").isEmpty)
            #expect(try await store.setPinned(true, first) == false)
        }
    }

    @Test("A newer version of a pinned entry is pinned too", arguments: StoreMaker.all)
    func pinOutlivesVersion(maker: StoreMaker) async throws {
        try await maker.with(capacity: 400_000) { fixture in
            let store = fixture.store
            let first = try await store.put("a", [1])
            #expect(try await store.setPinned(true, first))
            #expect(try await store.put("a", [2]).isPinned)
            let entry = try #require(try await store.get("a").first)
            let fresh = try await store.replaceDescription(of: entry, with: EntryDescription("n"), now: .at(1))
            #expect(fresh?.isPinned == true)
        }
    }

    @Test("A store without capacity refuses to write and answers", arguments: [0, -5])
    func noCapacity(capacity: Int) async throws {
        let store = MemoryStore(capacity: capacity)
        #expect(await errorCode { _ = try await store.put("a", [1]) } == .tooLarge)
        #expect(try await store.get("a").isEmpty)
        #expect(store.statistics.capacity == 0)
    }
}
