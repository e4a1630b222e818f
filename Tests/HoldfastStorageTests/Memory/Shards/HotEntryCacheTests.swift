// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastTesting
import Synchronization
import Testing

@testable import HoldfastStorage

@Suite("Copies of entries that several threads want at once", .timeLimit(.minutes(20)))
struct HotEntryCacheTests {
    private final class End: Sendable {
        let isReached = Atomic(false)
    }

    private let key = StoreKey("k")
    private let owner = MemoryShards()

    private func entry(_ number: UInt64, key: String = "k") -> StoredEntry {
        let entry = StoredEntry(
            key: StoreKey(key),
            variant: StoreKey("\(number)"),
            version: .init(number: number),
            description: EntryDescription("m"),
            bodyLength: 1,
            storedAt: .at(0)
        )
        let handle = SlotHandle(slot: UInt32(number), life: 1)
        return MemoryRecord(entry, held: ResidentBody(ByteChunk([1]), handle: handle, in: owner)).entry
    }

    @Test("A copy is valid for its key until its shard changes")
    func found() {
        var copies = HotEntryCacheState()
        copies.add(key, hash: 7, change: 3, entries: [entry(1)])
        let right = copies.lookUp(key, hash: 7, change: 3, now: .at(0))
        #expect(right?.entries == [entry(1)])
        let changed = copies.lookUp(key, hash: 7, change: 4, now: .at(0))
        let otherHash = copies.lookUp(key, hash: 8, change: 3, now: .at(0))
        let otherKey = copies.lookUp(StoreKey("l"), hash: 7, change: 3, now: .at(0))
        #expect(changed == nil && otherHash == nil && otherKey == nil)
        #expect(copies.lookups == 1)
    }

    @Test("A hit of the only variant is recorded; with several, none is before a body is opened")
    func notes() {
        var copies = HotEntryCacheState()
        copies.add(key, hash: 7, change: 0, entries: [entry(5)])
        copies.add(StoreKey("l"), hash: 1 << 16, change: 0, entries: [entry(1), entry(2)])
        _ = copies.lookUp(key, hash: 7, change: 0, now: .at(4))
        _ = copies.lookUp(StoreKey("l"), hash: 1 << 16, change: 0, now: .at(9))
        var handles: [SlotHandle] = []
        let now = copies.buffer.drain { handles.append($0) }
        #expect(now == .at(9))
        #expect(handles == [SlotHandle(slot: 5, life: 1)])
    }

    @Test("A copy shares the fate of its original")
    func fate() throws {
        var copies = HotEntryCacheState()
        let shown = entry(1)
        copies.add(key, hash: 7, change: 0, entries: [shown])
        let found = copies.lookUp(key, hash: 7, change: 0, now: .at(0))
        let copy = try #require(found?.entries.first?.held)
        let held = try #require(shown.held)
        #expect(copy !== held && !copy.isGone && !copy.hasSiblings)
        held.setSiblings(true)
        held.setGone()
        #expect(copy.isGone && copy.hasSiblings)
    }

    @Test("Only a key that was found locked twice is copied, and outdated copies are dropped")
    func bound() {
        var copies = HotEntryCacheState()
        let worth = [7, 7, 8, 7].map { copies.isWorth($0) }
        #expect(worth == [false, true, false, false])
        copies.add(key, hash: 7, change: 0, entries: [entry(1)])
        copies.add(StoreKey("l"), hash: 1 << 16, change: 1, entries: [entry(2)])
        let isAnyLeft = copies.drop { _, change in change == 1 }
        let dropped = copies.lookUp(key, hash: 7, change: 0, now: .at(0))
        let kept = copies.lookUp(StoreKey("l"), hash: 1 << 16, change: 1, now: .at(0))
        #expect(isAnyLeft && dropped == nil && kept != nil)
        let isAnyLeftOfNone = copies.drop { _, _ in false }
        #expect(!isAnyLeftOfNone)
    }

    @Test("Outdated copies are never seen again, however many readers there are, and hold no memory", arguments: 1...4)
    func changes(round: Int) async throws {
        let store = MemoryStore(capacity: 1 << 20)
        let end = End()
        weak var first: ResidentBody?
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<3 {
                group.addTask { [key] in
                    while !end.isReached.load(ordering: .relaxed) {
                        await Task.yield()
                        for _ in 0..<50 {
                            for entry in store.peek(key, now: .at(0)) ?? [] {
                                let body = try? await store.body(of: entry)
                                if let bytes = body?.bytesInMemory { #expect(bytes.count == entry.bodyLength) }
                            }
                        }
                    }
                }
            }
            for number in 1...300 {
                let stored = try await store.put("k", [UInt8](repeating: 1, count: number))
                if number == 1 { first = stored.held }
                #expect(store.peek(key, now: .at(0))?.map(\.version) == [stored.version])
                _ = try await store.body(of: stored)
                try await store.invalidate(key)
                #expect(store.peek(key, now: .at(0)) == [])
                #expect(await errorCode { _ = try await store.body(of: stored) } == .superseded)
            }
            end.isReached.store(true, ordering: .relaxed)
            try await group.waitForAll()
        }
        #expect(first == nil)
        let statistics = store.statistics
        #expect(statistics.entryCount == 0 && statistics.lookups >= statistics.lookupsFound)
    }

    /// Copies of what is there, in every stripe, as if each had met the key twice with its lock taken.
    private func copyEverywhere(_ store: MemoryStore) {
        let hash = store.hash(of: key)
        let change = store.shards.changes(MemoryShards.number(of: hash)).pointee.load(ordering: .acquiring)
        let entries = store.peek(key, now: .at(0)) ?? []
        for stripe in 0..<MemoryShards.stripes {
            for _ in 0..<2 {
                store.shards.copies(stripe).pointee.add(key, hash: hash, change: change, entries: entries)
            }
        }
    }

    @Test("Copies are valid until their shard changes, and are then dropped with their contents")
    func changesOneByOne() async throws {
        let store = MemoryStore(capacity: 1 << 20)
        weak var first: ResidentBody?
        do {
            let stored = try await store.put("k", [1])
            first = stored.held
            copyEverywhere(store)
            let before = store.shards.lookupsOfCopies
            let found = try #require(store.peek(key, now: .at(0))?.first)
            #expect(store.shards.lookupsOfCopies == before + 1, "a copy answered")
            #expect(found == stored && found.held !== stored.held)
            #expect(try await store.body(of: found).bytesInMemory?.array == [1])
        }
        let second = try await store.put("k", [2, 2])
        #expect(store.peek(key, now: .at(0)) == [second])
        #expect(first == nil, "nothing holds what was replaced")

        copyEverywhere(store)
        #expect(try await store.setPinned(true, second))
        #expect(store.peek(key, now: .at(0))?.map(\.isPinned) == [true])

        copyEverywhere(store)
        let third = try #require(
            try await store.replaceDescription(of: second, with: EntryDescription("n"), now: .at(0))
        )
        #expect(store.peek(key, now: .at(0)) == [third])
        #expect(await errorCode { _ = try await store.body(of: second) } == .superseded)

        copyEverywhere(store)
        try await store.purge(.all, now: .at(0))
        #expect(store.peek(key, now: .at(0)) == [])
        #expect(await errorCode { _ = try await store.body(of: third) } == .superseded)

        try await store.put("k", [4])
        copyEverywhere(store)
        store.trim(to: 0)
        #expect(store.peek(key, now: .at(0)) == [])

        try await store.put("k", [5])
        copyEverywhere(store)
        await store.close()
        #expect(store.peek(key, now: .at(0)) == [])
    }
}
