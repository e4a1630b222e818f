// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSimulation
import HoldfastStorage
import HoldfastTesting
import Testing

@Suite("What leaves memory first")
struct MemoryEvictionTests {
    @Test("The least recently used entry leaves first")
    func leastRecentlyUsed() async throws {
        let store = MemoryStore(capacity: 400_000, policy: .lru)
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

    @Test("A useless entry leaves before anything else, however recently it was used")
    func uselessFirst() async throws {
        let store = MemoryStore(capacity: 400_000)
        let body = [UInt8](repeating: 1, count: 60_000)
        for number in 0..<5 { try await store.put("k\(number)", body) }
        try await store.put("useless", [1], EntryDescription("m", uselessAfter: .at(10)))
        try await store.put("useful", [1], EntryDescription("m", uselessAfter: .at(1_000)))
        _ = try await store.get("useless")
        for number in 5..<7 { try await store.put("k\(number)", body, now: .at(11)) }
        #expect(try await store.get("useless", now: .at(11)).isEmpty)
        #expect(try await store.get("useful", now: .at(11)).count == 1)
    }

    @Test("Keys that are put and removed repeatedly do no harm", arguments: EvictionStrategy.all)
    func putAndRemoved(policy: EvictionStrategy) async throws {
        let store = MemoryStore(capacity: 64 << 20, policy: policy)
        for number in 0..<5_000 {
            try await store.put("item \(number)", [1])
            #expect(try await store.get("item \(number)").count == 1)
            try await store.invalidate(StoreKey("item \(number)"))
        }
        #expect(store.statistics.entryCount == 0)
        #expect(store.statistics.bytesUsed == 0)
        #expect(store.statistics.entriesEvicted == 0)
        #expect(store.statistics.entriesRemoved == 5_000)
    }

    @Test("A store without capacity refuses writes and answers reads", arguments: [0, -5])
    func noCapacity(capacity: Int) async throws {
        let store = MemoryStore(capacity: capacity)
        #expect(await errorCode { _ = try await store.put("a", [1]) } == .tooLarge)
        #expect(try await store.get("a").isEmpty)
        #expect(store.statistics.capacity == 0)
    }
}
