// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastStorage
import Testing

@Suite("Store laws: invalidation and purges", .timeLimit(.minutes(5)))
struct PurgeLawTests {
    private func writer(_ store: any CacheStore, _ key: String, tags: Set<String> = []) async throws -> any EntryWriter
    {
        let writer = try await store.write(
            StoreKey(key),
            variant: StoreKey(""),
            description: EntryDescription("m", tags: tags),
            expectedLength: nil,
            now: .at(0)
        )
        try await writer.append(ByteChunk([1, 2, 3]))
        return writer
    }

    @Test("An invalidation removes all variants of the key and nothing else", arguments: StoreMaker.all)
    func invalidate(maker: StoreMaker) async throws {
        try await maker.with { fixture in
            let store = fixture.store
            for variant in ["1", "2", "3"] { try await store.put("a", variant: variant, [1]) }
            let other = try await store.put("b", [2])
            try await store.invalidate(StoreKey("a"))
            #expect(try await store.get("a").isEmpty)
            #expect(try await store.get("b") == [other])
            #expect(store.statistics.entriesRemoved == 3)
        }
    }

    @Test("A purge takes what its selection names and says how many", arguments: StoreMaker.all)
    func purge(maker: StoreMaker) async throws {
        let forms: [(PurgeSelection, Set<String>)] = [
            (.all, []),
            (.tag("red"), ["p/2", "q/2"]),
            (.keyPrefix(Array("p/".utf8)), ["q/1", "q/2"]),
            (.matching { $0.bodyLength == 2 }, ["p/1", "q/1"]),
            (.tag("none"), ["p/1", "p/2", "q/1", "q/2"]),
        ]
        for (selection, left) in forms {
            try await maker.with { fixture in
                let store = fixture.store
                for prefix in ["p", "q"] {
                    try await store.put("\(prefix)/1", [1], EntryDescription("m", tags: ["red", "x"]))
                    try await store.put("\(prefix)/2", [1, 2], EntryDescription("m", tags: ["blue"]))
                }
                #expect(try await store.purge(selection, now: .at(1)) == 4 - left.count)
                for key in ["p/1", "p/2", "q/1", "q/2"] {
                    #expect(try await store.get(key).isEmpty == !left.contains(key), "\(key) \(selection.form)")
                }
                try await store.put("p/1", [5])
                #expect(try await store.get("p/1").count == 1)
            }
        }
    }

    @Test("A tag purge takes single variants of a key", arguments: StoreMaker.all)
    func purgeOneVariant(maker: StoreMaker) async throws {
        try await maker.with { fixture in
            let store = fixture.store
            try await store.put("a", variant: "1", [1], EntryDescription("m", tags: ["red"]))
            let left = try await store.put("a", variant: "2", [2])
            #expect(try await store.purge(.tag("red"), now: .at(1)) == 1)
            #expect(try await store.get("a") == [left])
        }
    }

    @Test("An entry that was written while its key became invalid does not appear", arguments: StoreMaker.all)
    func superseded(maker: StoreMaker) async throws {
        let attacks: [@Sendable (any CacheStore) async throws -> Void] = [
            { try await $0.invalidate(StoreKey("p/a")) },
            { try await $0.purge(.all, now: .at(1)) },
            { try await $0.purge(.tag("red"), now: .at(1)) },
            { try await $0.purge(.keyPrefix(Array("p/".utf8)), now: .at(1)) },
            { try await $0.purge(.matching { $0.key == StoreKey("p/a") }, now: .at(1)) },
        ]
        for attack in attacks {
            try await maker.with { fixture in
                let store = fixture.store
                let inFlight = try await writer(store, "p/a", tags: ["red"])
                let body = inFlight.follow()
                try await attack(store)
                #expect(await errorCode { try await inFlight.commit(nil, now: .at(2)) } == .superseded)
                #expect(try await store.get("p/a").isEmpty)
                #expect(try await body.whole() == [1, 2, 3], "readers keep the response they asked for")
                let later = try await writer(store, "p/a", tags: ["red"])
                _ = try await later.commit(nil, now: .at(3))
                #expect(try await store.get("p/a").count == 1)
            }
        }
    }

    @Test("A purge or invalidation of other keys lets a writer commit", arguments: StoreMaker.all)
    func notSuperseded(maker: StoreMaker) async throws {
        try await maker.with { fixture in
            let store = fixture.store
            let inFlight = try await writer(store, "a", tags: ["red"])
            try await store.invalidate(StoreKey("b"))
            try await store.purge(.tag("blue"), now: .at(1))
            try await store.purge(.keyPrefix([0]), now: .at(1))
            try await store.purge(.matching { _ in false }, now: .at(1))
            _ = try await inFlight.commit(nil, now: .at(2))
            #expect(try await store.get("a").count == 1)
        }
    }
}
