// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastTesting
import Synchronization
import Testing

@testable import HoldfastStorage

@Suite("A promotion never brings back what was changed meanwhile", .timeLimit(.minutes(20)))
struct TieredRaceTests {
    /// A way in which "a" changes, which has the body [1], the tag "red" and the version it is given.
    struct Change: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let run: @Sendable (any CacheStore, StoredEntry) async throws -> Void
    }

    static let changes = [
        Change(testDescription: "invalidated") { store, _ in try await store.invalidate(StoreKey("a")) },
        Change(testDescription: "removed") { store, entry in try await store.remove(entry) },
        Change(testDescription: "replaced") { store, _ in try await store.put("a", [2]) },
        Change(testDescription: "joined") { store, _ in try await store.put("a", variant: "other", [2]) },
        Change(testDescription: "freshened") { store, entry in
            try await store.replaceDescription(of: entry, with: EntryDescription("new"), now: .at(1))
        },
        Change(testDescription: "pinned") { store, entry in try await store.setPinned(true, entry) },
        Change(testDescription: "all purged") { store, _ in try await store.purge(.all, now: .at(1)) },
        Change(testDescription: "tag purged") { store, _ in try await store.purge(.tag("red"), now: .at(1)) },
        Change(testDescription: "prefix purged") { store, _ in
            try await store.purge(.keyPrefix(Array("a".utf8)), now: .at(1))
        },
        Change(testDescription: "predicate purged") { store, entry in
            try await store.purge(.matching { $0.version == entry.version }, now: .at(1))
        },
    ]

    /// Where a promotion stands when the change comes.
    enum Moment: String, CaseIterable, Sendable {
        case readsBelow, beginsWriting, commits

        func hold(_ upper: DistantStore, _ lower: DistantStore) -> DistantStore.Hold {
            switch self {
            case .readsBelow: lower.hold(.lookUp)
            case .beginsWriting: upper.hold(.write)
            case .commits: upper.hold(.commit)
            }
        }
    }

    private static func store() async throws -> (TieredStore, DistantStore, DistantStore, StoredEntry) {
        let (upper, lower) = (DistantStore(), DistantStore())
        // The upper tier answers without suspending, as memory does.
        upper.answersPeeks.store(true, ordering: .relaxed)
        let store = TieredStore(upper: upper, over: lower, rule: .firstHit)
        let entry = try await store.put("a", [1], EntryDescription("old", tags: ["red"]))
        return (store, upper, lower, entry)
    }

    @Test("No matter how far it has come", arguments: changes, Moment.allCases)
    func change(change: Change, moment: Moment) async throws {
        let (store, upper, lower, entry) = try await Self.store()
        let hold = moment.hold(upper, lower)
        #expect(try await store.wholeBody(of: entry) == [1])
        try await hold.reached.wait(for: 1)
        try await change.run(store, entry)
        hold.released.increment()
        await store.awaitPromotions()
        let truth = try await lower.get("a")
        #expect(truth != [entry])
        let above = store.peek(StoreKey("a"), now: .at(0))
        #expect(above == nil || above == truth)
        #expect(try await store.get("a") == truth)
        if !truth.contains(where: { $0.version == entry.version }) {
            #expect(await errorCode { _ = try await store.body(of: entry) } == .superseded)
        }
    }

    @Test("During and after a change, nobody who saw it sees the old state", arguments: changes)
    func underWay(change: Change) async throws {
        let (store, upper, lower, entry) = try await Self.store()
        #expect(try await store.wholeBody(of: entry) == [1])
        await store.awaitPromotions()
        #expect(store.peek(StoreKey("a"), now: .at(0)) == [entry])
        // The lower tier has changed, the upper one has not heard of it yet.
        let hold = upper.hold(change.testDescription.hasSuffix("purged") ? .purge : .invalidate)
        let changing = Task { try await change.run(store, entry) }
        try await hold.reached.wait(for: 1)
        #expect(try await store.get("a") == lower.get("a"))
        #expect(store.peek(StoreKey("a"), now: .at(0)) == nil)
        hold.released.increment()
        try await changing.value
        await store.awaitPromotions()
        let above = store.peek(StoreKey("a"), now: .at(0))
        let truth = try await lower.get("a")
        #expect(above == nil || above == truth)
    }

    @Test("An upper tier that cannot remove is no longer trusted", arguments: changes)
    func cannotForget(change: Change) async throws {
        let (store, upper, lower, entry) = try await Self.store()
        #expect(try await store.wholeBody(of: entry) == [1])
        await store.awaitPromotions()
        upper.failing.withLock { $0 = [.invalidate, .purge] }
        try await change.run(store, entry)
        await store.awaitPromotions()
        #expect(upper.statistics.entryCount > 0)
        let truth = try await lower.get("a")
        let above = store.peek(StoreKey("a"), now: .at(0))
        #expect(above == nil || above == truth)
        #expect(try await store.get("a") == truth)
        // Promotions go on in its next life.
        upper.failing.withLock { $0 = [] }
        let new = try await store.put("b", [3])
        #expect(try await store.wholeBody(of: new) == [3])
        await store.awaitPromotions()
        #expect(store.peek(StoreKey("b"), now: .at(0)) == [new])
    }

    @Test("A purge removes what only the upper tier still has, and calls its predicate once for each entry")
    func onlyAbove() async throws {
        let (store, upper, lower, entry) = try await Self.store()
        let other = try await store.put("b", [2])
        for entry in [entry, other] { _ = try await store.wholeBody(of: entry) }
        await store.awaitPromotions()
        try await lower.remove(entry)
        let asked = CountWatch()
        let count = try await store.purge(
            .matching { shown in
                asked.increment()
                return shown == entry
            },
            now: .at(1)
        )
        #expect(asked.count == 2 && count == 0)
        #expect(store.peek(StoreKey("a"), now: .at(0)) == nil)
        #expect(store.peek(StoreKey("b"), now: .at(0)) == [other])
        #expect(upper.statistics.entryCount == 1)
    }

    @Test("The first read of a body does not wait for a promotion, and promotions are bounded")
    func bounded() async throws {
        let (store, upper, _, entry) = try await Self.store()
        let holds = try await withHolds(store, upper, first: entry, count: TierCoherence.maximumPromotions)
        let one = try await store.put("one too many", [9])
        #expect(try await store.wholeBody(of: one) == [9])
        #expect(store.tierStatistics.promotionsDropped == 1)
        for hold in holds { hold.released.increment() }
        await store.awaitPromotions()
        #expect(store.tierStatistics.promotions == TierCoherence.maximumPromotions)
        #expect(try await store.wholeBody(of: one) == [9])
        await store.awaitPromotions()
        #expect(store.peek(one.key, now: .at(0)) == [one])
    }

    private func withHolds(
        _ store: TieredStore,
        _ upper: DistantStore,
        first: StoredEntry,
        count: Int
    ) async throws -> [DistantStore.Hold] {
        var holds: [DistantStore.Hold] = []
        for number in 0..<count {
            let entry = number == 0 ? first : try await store.put("k\(number)", [UInt8(number)])
            let hold = upper.hold(.write)
            _ = try await store.wholeBody(of: entry)
            try await hold.reached.wait(for: 1)
            holds.append(hold)
        }
        return holds
    }
}
