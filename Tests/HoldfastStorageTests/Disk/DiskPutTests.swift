// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastTesting
import Synchronization
import Testing

@testable import HoldfastStorage

@Suite("DiskStore: entries put in one step", .timeLimit(.minutes(20)))
struct DiskPutTests {
    private static func put(_ store: DiskStore, _ key: String, _ count: Int) async throws(StoreError) -> StoredEntry {
        try await store.put(
            StoreKey(key),
            variant: StoreKey(""),
            description: EntryDescription("meta"),
            body: ByteChunk([UInt8](repeating: 7, count: count)),
            now: .at(0)
        )
    }

    @Test("What is cut off the reclaimer's segment when it is closed never counts twice", arguments: [false, true])
    func closedForReclaimer(isVictimNext: Bool) async throws {
        let files = SimulatedFileSystem(remembersUnsynced: false)
        let store = try await DiskStore.open(directory: "/store", capacity: 1 << 20, fileSystem: files, now: .at(0))
        for number in 0..<200 { _ = try await Self.put(store, "k\(number)", 5_000) }
        let engine = store.engine
        let (before, after) = try await engine.threads.run(.changes) { () throws(StoreError) in
            try engine.log.openCarried()
            let before = engine.quota.reserve
            if isVictimNext { try engine.log.openCarried() } else { engine.log.close([.carried], isCut: true) }
            return (before, engine.quota.reserve)
        }
        #expect(after <= before, "callers would be granted what the reclaimer needs")
        await store.close()
    }

    @Test(
        "A purge by tag or prefix ends the pins of what it removes, and gives their room back",
        arguments: [PurgeSelection.tag("offline"), .keyPrefix(Array("k".utf8))]
    )
    func purgedPins(_ selection: PurgeSelection) async throws {
        let files = SimulatedFileSystem(remembersUnsynced: false)
        let store = try await DiskStore.open(directory: "/store", capacity: 4 << 20, fileSystem: files, now: .at(0))
        func put(_ number: Int, tags: Set<String>) async throws -> StoredEntry {
            try await store.put(
                StoreKey("k\(number)"),
                variant: StoreKey(""),
                description: EntryDescription(metadata: ByteChunk(), tags: tags),
                body: ByteChunk([UInt8](repeating: 7, count: 50_000)),
                now: .at(0)
            )
        }
        var counts: [Int] = []
        for _ in 0..<4 {
            var pinned = 0
            for number in 0..<60 {
                let entry = try await put(number, tags: ["offline"])
                #expect(!entry.isPinned)
                if try await store.setPinned(true, entry) { pinned += 1 }
            }
            counts.append(pinned)
            #expect(try await store.purge(selection, now: .at(0)) == nil)
        }
        #expect(counts[0] > 10 && counts[0] < 60)
        #expect(Set(counts).count == 1, "\(counts)")
        #expect(try await put(0, tags: []).isPinned == false)
        await store.close()
    }

    @Test(
        "An invalidation during a put removes the entry, also after a restart",
        arguments: [1_000, 400_000],
        ["key", "all", "predicate"]
    )
    func overtaken(count: Int, form: String) async throws {
        let files = SimulatedFileSystem(remembersUnsynced: false)
        let store = try await DiskStore.open(directory: "/store", capacity: 8 << 20, fileSystem: files, now: .at(0))
        let engine = store.engine
        let key = StoreKey("k")
        // What a put is between the reservation of its place and its publication, made by hand.
        let identity = engine.identity(key, variant: StoreKey(""))
        var draft = EntryDraft(
            key: key,
            variant: StoreKey(""),
            identity: identity,
            description: EntryDescription("meta"),
            body: .inline(ByteChunk([UInt8](repeating: 7, count: 1_000))),
            storedAt: .at(0),
            version: nil
        )
        var purpose = Writer.Purpose.put(since: engine.orders.last)
        if count > 1_000 {
            // One that takes long has a writer that stands for it.
            let writer = engine.index.shard(of: identity.primary).state.withLock { $0.writers.begin(draft) }
            purpose = .commit(writer: writer, since: engine.orders.last)
            draft.description = EntryDescription("long")
        }
        // The first place in a log makes its segment.
        _ = try await Self.put(store, "other", 10)
        let bytes = RecordBytes(draft, isSealed: false)
        let reserved = try engine.writer.reserve(draft, bytes: bytes, purpose: &purpose)
        guard case .done(let record?) = reserved else {
            Issue.record("\(reserved)")
            return
        }
        try engine.writer.write(record, bytes: bytes)
        // A purge by a predicate waits for what is being put, and takes it then.
        let purge = Task {
            switch form {
            case "key": try await store.invalidate(key)
            case "all": try await store.purge(.all, now: .at(1))
            default: _ = try await store.purge(.matching { $0.key == key }, now: .at(1))
            }
        }
        if form != "predicate" { try await purge.value }
        let published = engine.writer.publish(record, isWritten: true, mayRemain: false, purpose: purpose)
        if form != "predicate" { #expect(!published.isIn) }
        try await purge.value
        #expect(try await store.entries(for: key, now: .at(1)).isEmpty)
        await store.close()
        let again = try await DiskStore.open(directory: "/store", capacity: 8 << 20, fileSystem: files, now: .at(0))
        #expect(try await again.entries(for: key, now: .at(1)).isEmpty)
        await again.close()
    }

    @Test("A put that a newer one has overtaken is counted, like any that succeeds")
    func overtakenPut() async throws {
        let files = SimulatedFileSystem(remembersUnsynced: false)
        let store = try await DiskStore.open(directory: "/store", capacity: 8 << 20, fileSystem: files, now: .at(0))
        let engine = store.engine
        // The first place in a log makes its segment.
        _ = try await Self.put(store, "other", 10)
        let key = StoreKey("k")
        let draft = EntryDraft(
            key: key,
            variant: StoreKey(""),
            identity: engine.identity(key, variant: StoreKey("")),
            description: EntryDescription("older"),
            body: .inline(ByteChunk([1, 2, 3])),
            storedAt: .at(0)
        )
        var purpose = Writer.Purpose.put(since: engine.orders.last)
        let bytes = RecordBytes(draft, isSealed: false)
        let reserved = try engine.writer.reserve(draft, bytes: bytes, purpose: &purpose)
        guard case .done(let record?) = reserved else {
            Issue.record("\(reserved)")
            return
        }
        try engine.writer.write(record, bytes: bytes)
        _ = try await Self.put(store, "k", 20)
        let finished = try engine.writer.finish(record, failure: nil, draft: draft, body: nil, purpose: purpose)
        #expect(finished.entry != nil)
        #expect(try await store.entries(for: key, now: .at(0)).map(\.bodyLength) == [20])
        #expect(store.statistics.entriesWritten == 3)
        #expect(store.statistics.bytesWritten == 10 + 3 + 20)
        await store.close()
    }

    @Test("An entry that waits for room has a writer that represents it, and leaves none behind")
    func waiting() async throws {
        let files = SimulatedFileSystem(remembersUnsynced: false)
        let store = try await DiskStore.open(directory: "/store", capacity: 1 << 20, fileSystem: files, now: .at(0))
        let engine = store.engine
        for number in 0..<400 {
            _ = try await Self.put(store, "k\(number)", number.isMultiple(of: 40) ? 40_000 : 6_000)
        }
        #expect(store.statistics.entriesEvicted > 0)
        #expect(store.statistics.entriesWritten == 400)
        let left = engine.index.shards.reduce(0) { $0 + $1.state.withLock { $0.writers.all.count + $0.pending.count } }
        #expect(left == 0)
        // Where nothing can go, a put has its own failure, and its writer is gone.
        await #expect(throws: StoreError.self) { try await Self.put(store, "large", 1 << 20) }
        let after = engine.index.shards.reduce(0) { $0 + $1.state.withLock { $0.writers.all.count + $0.pending.count } }
        #expect(after == 0)
        await store.close()
    }

    @Test("A removal whose tombstone must wait also removes what a failed put may have left on the disk")
    func postponedTombstone() async throws {
        let files = SimulatedFileSystem(remembersUnsynced: false)
        let store = try await DiskStore.open(directory: "/store", capacity: 8 << 20, fileSystem: files, now: .at(0))
        let engine = store.engine
        let entry = try await Self.put(store, "k", 10)
        let source = try #require(try await engine.lookup.source(of: entry))
        // A put that the device reports as failed although its record is complete, and that cannot be wiped.
        let draft = EntryDraft(
            key: entry.key,
            variant: entry.variant,
            identity: engine.identity(entry.key, variant: entry.variant),
            description: EntryDescription("newer"),
            body: .inline(ByteChunk([1])),
            storedAt: .at(0)
        )
        var purpose = Writer.Purpose.put(since: engine.orders.last)
        let bytes = RecordBytes(draft, isSealed: false)
        let reserved = try engine.writer.reserve(draft, bytes: bytes, purpose: &purpose)
        guard case .done(let record?) = reserved else {
            Issue.record("\(reserved)")
            return
        }
        try engine.writer.write(record, bytes: bytes)
        _ = engine.writer.publish(record, isWritten: false, mayRemain: true, purpose: purpose)
        // There is no segment for tombstones yet, so the log has no room for one.
        let primary = source.header.primary
        let removal = engine.remover.reserveRemoval(
            of: source.row,
            primary: primary,
            isEviction: false,
            mayPostpone: true
        )
        guard case .done(_?) = removal, engine.remover.hasPendingTombstones else {
            Issue.record("\(removal)")
            return
        }
        try await engine.threads.run(.changes) { engine.remover.writePendingTombstones() }
        #expect(!engine.remover.hasPendingTombstones)
        let killed = files.crashed(.process)
        let again = try await DiskStore.open(directory: "/store", capacity: 8 << 20, fileSystem: killed, now: .at(1))
        #expect(try await again.entries(for: entry.key, now: .at(1)).isEmpty)
        await again.close()
        await store.close()
    }

    @Test("A failed write in a put leaves no entry, and its bytes are released", arguments: [1_000, 400_000])
    func failing(count: Int) async throws {
        let files = SimulatedFileSystem(remembersUnsynced: false)
        let store = try await DiskStore.open(directory: "/store", capacity: 8 << 20, fileSystem: files, now: .at(0))
        _ = try await Self.put(store, "before", 1_000)
        let used = store.statistics.bytesUsed
        let old = try await Self.put(store, "k", 500)
        files.plan(.once(at: 0, errno: 5).only("write"))
        await #expect(throws: StoreError.self) { try await Self.put(store, "k", count) }
        files.plan()
        #expect(try await store.entries(for: StoreKey("k"), now: .at(1)).map(\.version) == [old.version])
        await store.engine.threads.drain(.writes)
        #expect(store.engine.quota.uncommitted == 0)
        #expect(store.statistics.bytesUsed <= used + 4_096)
        await store.close()
    }
}
