// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastTesting
import Synchronization
import Testing

@testable import HoldfastStorage

@Suite("A fast store over a large one", .timeLimit(.minutes(20)))
struct TieredStoreTests {
    private static func store(
        _ rule: PromotionRule = .firstHit,
        memory: Int = 1 << 20,
        needsValidation: Bool = false
    ) -> (TieredStore, DistantStore) {
        let lower = DistantStore(needsValidation: needsValidation)
        return (TieredStore(memory: memory, over: lower, rule: rule), lower)
    }

    /// What the upper tier answers, once nothing is under way.
    private static func above(_ store: TieredStore, _ key: String = "a") async -> [StoredEntry]? {
        await store.awaitPromotions()
        return store.peek(StoreKey(key), now: .at(0))
    }

    @Test("An entry that was hit is answered from memory, as the lower tier has it", arguments: [false, true])
    func promotion(needsValidation: Bool) async throws {
        let (store, _) = Self.store(needsValidation: needsValidation)
        let description = EntryDescription("head", uselessAfter: .at(90), tags: ["t"])
        let first = try await store.put("a", variant: "1", [1, 2, 3], description, now: .at(5))
        try await store.put("a", variant: "2", [4], now: .at(6))
        #expect(try await store.setPinned(true, first))
        #expect(await Self.above(store) == nil, "nothing was hit yet")
        let below = try await store.get("a")
        #expect(await Self.above(store) == nil, "a look-up alone promotes nothing")
        #expect(try await store.wholeBody(of: below[1]) == [1, 2, 3])
        #expect(await Self.above(store) == below)
        #expect(below.map(\.needsValidation) == [needsValidation, needsValidation])
        #expect(below[1].isPinned && below[1].storedAt == .at(5) && below[1].description == description)
        #expect(try await store.body(of: below[1]).bytesInMemory?.array == [1, 2, 3])
        #expect(try await store.body(of: below[0]).bytesInMemory == nil, "only what was read is copied")
        #expect(try await store.wholeBody(of: below[0]) == [4])
        #expect(await Self.above(store) == below)
        for entry in below { #expect(try await store.body(of: entry).bytesInMemory != nil) }
        #expect(store.tierStatistics.promotions == 2 && store.tierStatistics.bytesPromoted == 4)
    }

    @Test("The second hit promotes if the rule requires two")
    func secondHit() async throws {
        let (store, _) = Self.store(.secondHit)
        let entry = try await store.put("a", [1])
        #expect(try await store.wholeBody(of: entry) == [1])
        #expect(await Self.above(store) == nil)
        #expect(try await store.wholeBody(of: entry) == [1])
        #expect(await Self.above(store) == [entry])
    }

    @Test("A key that is known to be absent is answered by the lower tier's own peek")
    func absent() async throws {
        let (store, lower) = Self.store()
        #expect(store.peek(StoreKey("a"), now: .at(0)) == nil)
        lower.answersPeeks.store(true, ordering: .relaxed)
        #expect(store.peek(StoreKey("a"), now: .at(0)) == [])
    }

    @Test("A body read in pieces is promoted at its end, and reading it again does not count as a reader")
    func pieces() async throws {
        let subject = try await StoreFactory.disk.make(16 << 20)
        defer { subject.cleanUp() }
        let store = TieredStore(memory: 8 << 20, over: subject.store, rule: PromotionRule(hits: 1, share: 1))
        var generator = SeededGenerator(seed: 5)
        let bytes = generator.bytes(700_000)
        let entry = try await store.put("a", bytes)
        let body = try await store.body(of: entry)
        let first = try await body.read(from: 0, upTo: 100_000)
        await store.awaitPromotions()
        #expect(store.upper.statistics.entryCount == 0, "a beginning is not worth a copy")
        #expect(try await body.whole(piece: 100_000) == bytes)
        #expect(await Self.above(store) == [entry])
        let held = try await store.body(of: entry)
        #expect(held.bytesInMemory?.array == bytes)
        #expect(store.statistics.bytesRead == first.count + 2 * 700_000)
        await store.close()
    }

    @Test("Only the end of a body, or a body longer than the rule allows, is not copied")
    func notWorthwhile() async throws {
        let (store, _) = Self.store(PromotionRule(hits: 1, share: 16), memory: 1 << 20)
        let short = try await store.put("a", [UInt8](repeating: 1, count: 1_000))
        _ = try await store.body(of: short).read(from: 500, upTo: 500)
        #expect(await Self.above(store) == nil)
        let long = try await store.put("b", [UInt8](repeating: 1, count: 1 << 16 + 1))
        _ = try await store.wholeBody(of: long)
        #expect(await Self.above(store, "b") == nil)
        #expect(store.tierStatistics.promotionsDropped == 0)
    }

    @Test("More variants than every store keeps are not promoted")
    func manyVariants() async throws {
        let (store, _) = Self.store()
        for number in 0..<9 { try await store.put("a", variant: "\(number)", [1]) }
        let entries = try await store.get("a")
        _ = try await store.wholeBody(of: entries[0])
        #expect(await Self.above(store) == nil)
        try await store.remove(entries[8])
        _ = try await store.wholeBody(of: entries[0])
        #expect(await Self.above(store) == Array(entries.prefix(8)))
    }

    @Test("A group that the upper tier has evicted in part is not used")
    func partOfGroup() async throws {
        let (store, _) = Self.store()
        for number in 0..<4 { try await store.put("a", variant: "\(number)", [1]) }
        let entries = try await store.get("a")
        _ = try await store.wholeBody(of: entries[0])
        #expect(await Self.above(store) == entries)
        let memory = try #require(store.upper as? MemoryStore)
        memory.trim(to: memory.statistics.bytesUsed - 1)
        #expect(memory.statistics.entryCount == 3)
        #expect(await Self.above(store) == nil)
        #expect(try await store.get("a") == entries)
    }

    @Test("A freshened or pinned entry keeps its body in the upper tier")
    func freshened() async throws {
        let (store, lower) = Self.store()
        let entry = try await store.put("a", [1, 2])
        _ = try await store.wholeBody(of: entry)
        await store.awaitPromotions()
        let fresh = try await store.replaceDescription(of: entry, with: EntryDescription("new"), now: .at(9))
        let changed = try #require(fresh)
        #expect(await Self.above(store) == [changed])
        #expect(try await store.setPinned(true, changed))
        #expect(await Self.above(store)?.first?.isPinned == true)
        lower.failing.withLock { $0 = [.body] }
        #expect(try await store.wholeBody(of: changed) == [1, 2])
    }

    @Test("An eviction in the lower tier is noticed, and the entry no longer returned")
    func evictedBelow() async throws {
        let (store, lower) = Self.store()
        let entry = try await store.put("a", [1])
        _ = try await store.wholeBody(of: entry)
        #expect(await Self.above(store) == [entry])
        try await lower.remove(entry)
        lower.answersPeeks.store(true, ordering: .relaxed)
        var looks = 0
        while await Self.above(store) == [entry], looks < 100 { looks += 1 }
        #expect(looks < 20)
        #expect(await Self.above(store) == [])
    }

    @Test("Each tier has its own statistics, and the whole counts what it answered")
    func statistics() async throws {
        let (store, _) = Self.store()
        let entry = try await store.put("a", [1, 2, 3])
        _ = try await store.get("a")
        _ = try await store.wholeBody(of: entry)
        for _ in 0..<3 {
            #expect(await Self.above(store) == [entry])
            _ = try await store.wholeBody(of: entry)
        }
        _ = try await store.get("b")
        let (whole, tiers) = (store.statistics, store.tierStatistics)
        #expect(whole.lookups == 5 && whole.lookupsFound == 4 && whole.bytesRead == 12)
        #expect(whole.entryCount == 1 && whole.capacity == 64 << 20)
        #expect(tiers.upper.lookups == 5 && tiers.upper.lookupsFound == 3 && tiers.upperHitRatio == 0.6)
        #expect(tiers.upper.bytesRead == 9 && tiers.upper.entryCount == 1 && tiers.upper.capacity == 1 << 20)
        #expect(tiers.lower.lookups == 3, "two look-ups and that of the promotion")
        #expect(store.secret == store.lower.secret)
    }

    @Test("Closing closes both tiers")
    func closing() async throws {
        let (store, lower) = Self.store()
        let entry = try await store.put("a", [1])
        _ = try await store.wholeBody(of: entry)
        #expect(await Self.above(store) == [entry])
        await store.close()
        #expect(await Self.above(store) == nil)
        #expect(await errorCode { _ = try await lower.get("a") } == .closed)
        #expect(await errorCode { _ = try await store.upper.get("a") } == .closed)
        #expect(await errorCode { _ = try await store.body(of: entry) } == .closed)
    }

    @Test(
        "Every law holds with default listing, with an upper tier that always fails, and with a slow one",
        arguments: [
            StoreFactory.wrapping(.memory, "distant") { DistantStore($0) },
            StoreFactory.wrapping(.memory, "under a failing tier") { lower in
                let upper = DistantStore()
                upper.failing.withLock { $0 = Set(DistantStore.Step.allCases) }
                return SettledStore(TieredStore(upper: upper, over: lower, rule: .firstHit))
            },
            StoreFactory.wrapping(.memory, "under a distant tier") { lower in
                SettledStore(TieredStore(upper: DistantStore(), over: DistantStore(lower), rule: .firstHit))
            },
        ]
    )
    func laws(factory: StoreFactory) async {
        let findings = await StoreConformance.findings(of: factory)
        #expect(findings.isEmpty, "\(findings)")
    }
}
