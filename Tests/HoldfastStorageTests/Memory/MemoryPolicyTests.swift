// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSimulation
import HoldfastTesting
import Testing

@testable import HoldfastStorage

@Suite("A memory store and its policy", .timeLimit(.minutes(20)))
struct MemoryPolicyTests {
    private static func picky(_ capacity: Int, entrySize: Int? = nil) -> MemoryStore {
        var generator = SeededGenerator(seed: 1)
        return MemoryStore(
            limits: MemoryLimits(capacity: capacity, entrySize: entrySize, variants: 16),
            using: &generator
        ) { PickyPolicy(capacity: $0) }
    }

    @Test("An entry that the policy declines is there after its commit, and leaves before what the policy keeps")
    func declined() async throws {
        let store = Self.picky(10_000)
        let body = [UInt8](repeating: 1, count: 1_700)
        for _ in 0..<2 { try await store.put("kept", body) }
        _ = try await store.get("kept")
        let declined = try await store.put("declined", body)
        #expect(try await store.wholeBody(of: declined) == body)
        for number in 0..<8 {
            let last = try await store.put("other \(number)", body)
            // A list is no use of what it shows.
            let there = try await store.list(after: nil, limit: .max, now: .at(0)).listed.map(\.entry)
            #expect(there.contains(last), "what was written last is gone")
        }
        #expect(try await store.get("declined").isEmpty)
        #expect(try await store.get("kept").count == 1)
        #expect(store.statistics.bytesUsed <= 10_000)
    }

    @Test("Of several variants, the one whose body is opened counts as used")
    func variants() async throws {
        let store = MemoryStore(capacity: 10_000, policy: .lru, maximumEntrySize: 5_000)
        let body = [UInt8](repeating: 1, count: 1_500)
        let first = try await store.put("a", variant: "1", body)
        try await store.put("a", variant: "2", body)
        try await store.put("b", body)
        _ = try await store.get("a")
        _ = try await store.body(of: first)
        for number in 0..<2 { try await store.put("k\(number)", body) }
        #expect(try await store.get("a").map(\.variant) == [StoreKey("1")])
    }

    /// What may be asked of an entry that another one's use is about to evict.
    enum Change: CaseIterable {
        case purge, remove, invalidate, pin, describe
    }

    @Test("A change finds no entry that the uses noted before it have evicted", arguments: Change.allCases)
    func usesFirst(_ change: Change) async throws {
        let store = Self.picky(10_000, entrySize: 9_000)
        let body = [UInt8](repeating: 1, count: 4_000)
        try await store.put("kept", body)
        let kept = try await store.put("kept", body)
        try await store.put("declined", body)
        // The policy hears of this with the next change; it then keeps this one in the place of the other.
        _ = try await store.get("declined")
        switch change {
        case .purge: #expect(try await store.purge(.all, now: .at(0)) == 1)
        case .remove: try await store.remove(kept)
        case .invalidate: try await store.invalidate(kept.key)
        case .pin: #expect(try await !store.setPinned(true, kept))
        case .describe:
            let described = try await store.replaceDescription(of: kept, with: EntryDescription("m"), now: .at(0))
            #expect(described == nil)
        }
        let statistics = store.statistics
        #expect(statistics.entriesEvicted == 1)
        #expect(statistics.entriesRemoved == (change == .purge ? 1 : 0))
        #expect(statistics.entryCount == (change == .purge ? 0 : 1))
    }

    @Test("A reader continues when the policy does not keep the entry it reads")
    func follower() async throws {
        let store = Self.picky(10_000, entrySize: 9_000)
        let writer = try await store.write(
            StoreKey("a"),
            variant: StoreKey(""),
            description: EntryDescription("m"),
            expectedLength: nil,
            now: .at(0)
        )
        let follower = writer.follow()
        let body = [UInt8](repeating: 7, count: 5_000)
        try await writer.append(ByteChunk(body))
        let entry = try await writer.commit(nil, now: .at(0))
        try await store.put("b", body)
        #expect(try await store.get("a").isEmpty)
        #expect(await errorCode { _ = try await store.body(of: entry) } == .superseded)
        #expect(try await follower.whole() == body)
    }

    @Test("The same steps with the same seed leave the same entries")
    func deterministic() async throws {
        var seen: [[StoreKey]] = []
        for _ in 0..<2 {
            var generator = SeededGenerator(seed: 5)
            let store = MemoryStore(
                limits: MemoryLimits(capacity: 50_000, entrySize: nil, variants: 16),
                using: &generator
            ) { EvictionStrategy.lru.makePolicy(capacity: $0, seed: 3) }
            for step in 0..<2_000 {
                let key = "\(Int.random(in: 0..<200, using: &generator))"
                if try await store.get(key).isEmpty {
                    try await store.put(key, [UInt8](repeating: 0, count: step % 900))
                }
            }
            seen.append(try await store.list(after: nil, limit: .max, now: .at(0)).listed.map(\.entry.key))
        }
        #expect(seen[0] == seen[1])
        #expect(seen[0].count > 20)
    }

    @Test("Pending hits are reported to the policy before it decides")
    func drained() async throws {
        let store = MemoryStore(capacity: 100_000, policy: .lru)
        let body = [UInt8](repeating: 1, count: 4_000)
        for number in 0..<20 { try await store.put("k\(number)", body) }
        for number in 0..<10 { _ = store.peek(StoreKey("k\(number)"), now: .at(0)) }
        for number in 20..<30 { try await store.put("k\(number)", body) }
        for number in 0..<10 { #expect(try await store.get("k\(number)").count == 1, "k\(number)") }
    }

    @Test(
        "A store has the hits that the simulator predicts for its policy",
        arguments: [.memory, .lru, .s3fifo] as [EvictionStrategy]
    )
    func simulated(strategy: EvictionStrategy) async throws {
        var generator = SeededGenerator(seed: 11)
        // One entry is being written at a time, and its bytes are the policy's no more.
        let (size, capacity) = (1_000, 100_000)
        let store = MemoryStore(
            limits: MemoryLimits(capacity: capacity + size, entrySize: nil, variants: 16),
            using: &generator
        ) { strategy.makePolicy(capacity: $0, seed: 3) }
        var simulator = HitRateSimulator()
        simulator.add(strategy, capacity: capacity, seed: 3)
        let body = [UInt8](repeating: 1, count: size - MemoryStore.overhead - 4 - 1)
        let requests = 8_000
        var hits = 0
        for _ in 0..<requests {
            // The square of a uniform number: some keys are asked for far more often than others.
            let draw = Double.random(in: 0..<1, using: &generator)
            let key = UInt32(draw * draw * 900)
            simulator.replay(key: key, size: UInt32(size))
            let name = String(1_000 + key)
            if store.peek(StoreKey(name), now: .at(0))?.isEmpty == false {
                hits += 1
            } else {
                try await store.put(name, body, EntryDescription("m"))
            }
        }
        let expected = try #require(simulator.results.first?.hits)
        #expect(abs(hits - expected) * 100 <= 2 * requests, "\(hits) hits of \(requests), not \(expected)")
        #expect(expected * 10 > requests)
    }
}
