// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastTesting
import Synchronization
import Testing

@testable import HoldfastStorage

@Suite("DiskStore: changes during listings, long bodies and full devices", .timeLimit(.minutes(20)))
struct DiskChangesTests {
    private static func open(_ files: SimulatedFileSystem, capacity: Int = 8 << 20) async throws -> DiskStore {
        try await DiskStore.open(directory: "/store", capacity: capacity, fileSystem: files, now: .at(0))
    }

    /// Freshens and pins every entry again and again while `walk` runs.
    private static func walking<Value: Sendable>(
        _ store: DiskStore,
        _ keys: [String],
        _ walk: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        let isOver = Flag()
        return try await withThrowingTaskGroup(of: Value?.self) { group in
            for part in 0..<3 {
                group.addTask {
                    var turn = part
                    while !isOver.isSet {
                        turn += 1
                        guard let entry = try await store.get(keys[turn % keys.count]).first else { continue }
                        if turn % 3 == 0 {
                            _ = try await store.setPinned(turn % 2 == 0, entry)
                        } else {
                            _ = try await store.replaceDescription(of: entry, with: entry.description, now: .at(1))
                        }
                    }
                    return nil
                }
            }
            group.addTask {
                defer { isOver.set() }
                return try await walk()
            }
            var found: Value?
            for try await value in group { found = value ?? found }
            return try #require(found)
        }
    }

    @Test("A purge by predicate removes entries that are freshened and pinned meanwhile")
    func purgeMatching() async throws {
        let store = try await Self.open(SimulatedFileSystem(remembersUnsynced: false))
        let keys = (0..<600).map { "k\($0)" }
        for key in keys { try await store.put(key, [1]) }
        _ = try await Self.walking(store, keys) {
            try await store.purge(.matching { _ in true }, now: .at(1)) ?? 0
        }
        #expect(store.statistics.entryCount == 0)
        await store.close()
    }

    @Test("A change is completed although the task that makes it is cancelled")
    func cancelled() async throws {
        let files = SimulatedFileSystem(remembersUnsynced: false)
        // Every look at a record waits for the device.
        files.cachedReads = .none
        let store = try await Self.open(files)
        let changed = try await store.put("changed", [1])
        let removed = try await store.put("removed", [1])
        // More than one page of a purge.
        for number in 0..<600 { try await store.put("k\(number)", [1], EntryDescription("swept")) }
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            let new = try await store.replaceDescription(of: changed, with: EntryDescription("new"), now: .at(1))
            let isPinned = try await store.setPinned(true, try #require(new))
            try await store.remove(removed)
            return (isPinned, try await store.purge(.matching { $0.description.text == "swept" }, now: .at(1)))
        }
        let (isPinned, count) = try await task.value
        #expect(isPinned && count == 600)
        #expect(try await store.get("changed").map(\.description.text) == ["new"])
        #expect(store.statistics.entryCount == 1)
        await store.close()
    }

    /// A record between the reservation of its place and its publication; the test does the rest.
    private struct Unfinished {
        let record: ReservedRecord
        let bytes: RecordBytes
        let purpose: Writer.Purpose

        /// Reserves an entry's place in a segment that is open already.
        init(_ draft: EntryDraft, in store: DiskStore, isPinned: Bool? = nil, purpose: Writer.Purpose) throws {
            var draft = draft
            var purpose = purpose
            draft.isPinned = isPinned
            bytes = RecordBytes(draft, isSealed: false)
            let reserved = try store.engine.writer.reserve(draft, bytes: bytes, purpose: &purpose)
            guard case .done(let record?) = reserved else { throw StoreError(.noSpace, "\(reserved)") }
            (self.record, self.purpose) = (record, purpose)
        }

        func finish(in store: DiskStore) throws {
            try store.engine.writer.write(record, bytes: bytes)
            _ = store.engine.writer.publish(record, isWritten: true, mayRemain: false, purpose: purpose)
        }
    }

    private static func draft(_ key: String, in store: DiskStore, version: UInt64? = nil) -> EntryDraft {
        let (key, variant) = (StoreKey(key), StoreKey(""))
        return EntryDraft(
            key: key,
            variant: variant,
            identity: store.engine.identity(key, variant: variant),
            description: EntryDescription("meta"),
            body: .inline(ByteChunk([1])),
            storedAt: .at(0),
            version: version
        )
    }

    @Test("A purge that finds too many marks drops none that kills an entry being written")
    func fullMarks() async throws {
        let store = try await Self.open(SimulatedFileSystem(remembersUnsynced: false))
        let engine = store.engine
        try await store.put("first", [1])
        let writer = try await store.writer("x/begun")
        let put = try Unfinished(
            Self.draft("x/put", in: store),
            in: store,
            purpose: .put(since: engine.orders.last)
        )
        try await store.purge(.keyPrefix(Array("x/".utf8)), now: .at(1))
        let last = engine.orders.last
        engine.orders.withMarks { marks in
            for tag in 0..<UInt64(PurgeMarks.bound) { marks.add(.tag(tag), order: last, horizon: .max) }
        }
        let isPurged = Flag()
        let purging = Task {
            try await store.purge(.tag("other"), now: .at(1))
            isPurged.set()
        }
        // Many more turns than a purge needs that does not wait for the put.
        for _ in 0..<1_000 where !isPurged.isSet {
            for lane in [IOThreads.Lane.reads, .changes] { try await engine.threads.run(lane, isUrgent: true) {} }
        }
        try put.finish(in: store)
        try await purging.value
        #expect(try await store.get("x/put").isEmpty)
        #expect(await errorCode { try await writer.commit(nil, now: .at(1)) } == .superseded)
        #expect(try await store.get("x/begun").isEmpty)
        #expect(engine.orders.withMarks { $0.count } == 1)
        await store.close()
    }

    /// A record that pins the entry "a", and is not in the index yet.
    private static func beginPinning(_ entry: StoredEntry, in store: DiskStore) async throws -> Unfinished {
        let order = try #require(try await store.engine.lookup.source(of: entry)).header.order
        return try Unfinished(
            draft("a", in: store, version: order),
            in: store,
            isPinned: true,
            purpose: .replace(order: order, since: store.engine.orders.last)
        )
    }

    @Test("A pin counts from the instant at which its row is in the index until the row leaves it")
    func pinCount() async throws {
        let store = try await Self.open(SimulatedFileSystem(remembersUnsynced: false))
        let entry = try await store.put("a", [1])
        for isAll in [false, true] {
            let current = try #require(try await store.get("a").first)
            try await Self.beginPinning(current, in: store).finish(in: store)
            let weight = try store.pinnedWeight
            #expect(weight > 0 && store.engine.pins.sum == weight)
            if isAll { try await store.purge(.all, now: .at(0)) } else { try await store.remove(current) }
            #expect(store.engine.pins.sum == 0)
            if !isAll { try await store.put("a", [1]) }
        }
        #expect(try await store.setPinned(true, entry) == false)
        #expect(store.engine.pins.sum == 0)
        await store.close()
    }

    @Test("Unpinning an entry for whose pin there was no room any more holds at the next opening too")
    func refusedPin() async throws {
        let files = SimulatedFileSystem(remembersUnsynced: false)
        let store = try await Self.open(files)
        let entry = try await store.put("a", [1])
        let pinning = try await Self.beginPinning(entry, in: store)
        let (other, pins) = (EntryIdentity(primary: 1, variant: 1), store.engine.pins)
        var taken = 0
        for shift in (0..<40).reversed() where pins.pin(other, weight: taken + 1 << shift) { taken += 1 << shift }
        try pinning.finish(in: store)
        #expect(pins.sum == taken)
        let current = try #require(try await store.get("a").first)
        #expect(!current.isPinned)
        #expect(try await store.setPinned(false, current))
        await store.close()
        let reopened = try await Self.open(files)
        #expect(try await reopened.get("a").first?.isPinned == false)
        #expect(reopened.engine.pins.sum == 0)
        await reopened.close()
    }

    @Test("A purge by predicate removes the rest although a record cannot be read")
    func purgeBesideBadSector() async throws {
        let files = SimulatedFileSystem(remembersUnsynced: false)
        let store = try await Self.open(files)
        for number in 0..<600 { try await store.put("k\(number)", [1]) }
        files.plan(.once(at: 0, errno: 5).only("read"))
        #expect(await errorCode { _ = try await store.purge(.matching { _ in true }, now: .at(1)) } == .io)
        files.plan()
        #expect(store.statistics.entryCount <= 1)
        await store.close()
    }

    @Test("An entry that is removed while it is pinned is gone")
    func removedWhilePinned() async throws {
        let store = try await Self.open(SimulatedFileSystem(remembersUnsynced: false))
        let entry = try await store.put("a", [1])
        let pinning = try await Self.beginPinning(entry, in: store)
        let removing = Task { try await store.remove(entry) }
        // Many more turns than the removal needs to find that it must wait.
        for _ in 0..<1_000 { try await store.engine.threads.run(.writes, isUrgent: true) {} }
        try pinning.finish(in: store)
        try await removing.value
        #expect(try await store.get("a").isEmpty)
        #expect(store.engine.pins.sum == 0)
        await store.close()
    }

    @Test("A put that waits for a change of its entry is superseded meanwhile", arguments: [false, true])
    func invalidatedWhileWaiting(isAll: Bool) async throws {
        let store = try await Self.open(SimulatedFileSystem(remembersUnsynced: false))
        let pinning = try await Self.beginPinning(try await store.put("a", [1]), in: store)
        let putting = Task {
            await errorCode {
                _ = try await store.put(
                    StoreKey("a"),
                    variant: StoreKey(""),
                    description: EntryDescription("old"),
                    body: ByteChunk([2]),
                    now: .at(0)
                )
            }
        }
        for _ in 0..<1_000 { try await store.engine.threads.run(.writes, isUrgent: true) {} }
        if isAll { _ = try await store.purge(.all, now: .at(0)) } else { try await store.invalidate(StoreKey("a")) }
        try pinning.finish(in: store)
        #expect(await putting.value == .superseded)
        #expect(try await store.get("a").isEmpty)
        await store.close()
    }

    @Test("A purge by a tag that a writer began with supersedes it, even if it is committed without that tag")
    func formerTag() async throws {
        let store = try await Self.open(SimulatedFileSystem(remembersUnsynced: false))
        let writer = try await store.write(
            StoreKey("a"),
            variant: StoreKey(""),
            description: EntryDescription("m", tags: ["former"]),
            expectedLength: nil,
            now: .at(0)
        )
        try await store.purge(.tag("former"), now: .at(1))
        #expect(await errorCode { _ = try await writer.commit(EntryDescription("m"), now: .at(2)) } == .superseded)
        await store.close()
    }

    @Test("A list shows entries that are freshened and pinned meanwhile")
    func list() async throws {
        let store = try await Self.open(SimulatedFileSystem(remembersUnsynced: false))
        let keys = (0..<600).map { "k\($0)" }
        for key in keys { try await store.put(key, [1]) }
        let listed = try await Self.walking(store, keys) { try await store.listed(limit: 50) }
        #expect(Set(listed.map(\.entry.key)).count == keys.count)
        await store.close()
    }

    @Test("A body that is appended in one call lets others write in between")
    func longAppend() async throws {
        let files = SimulatedFileSystem(remembersUnsynced: false)
        let store = try await Self.open(files, capacity: 256 << 20)
        let isAppended = Flag()
        let body = ByteChunk([UInt8](repeating: 7, count: 48 << 20))
        let writer = try await store.write(
            StoreKey("long"),
            variant: StoreKey(""),
            description: EntryDescription("m"),
            expectedLength: body.count,
            now: .at(0)
        )
        let appending = Task {
            try await writer.append(body)
            isAppended.set()
        }
        // The first chunks are being written.
        await DiskSpaceTests.settle { files.paths.contains { $0.hasSuffix(".blob") } }
        // Longer than what a caller's own thread may write.
        for number in 0..<5 { try await store.put("k\(number)", [UInt8](repeating: 1, count: 100_000)) }
        #expect(!isAppended.isSet, "they waited for the whole body")
        try await appending.value
        let entry = try await writer.commit(nil, now: .at(0))
        #expect(entry.bodyLength == body.count)
        let half = try await store.body(of: entry).read(from: 24 << 20, upTo: 10)
        #expect(half.array == [UInt8](repeating: 7, count: 10))
        await store.close()
    }

    @Test("Purges by tag stay fast however many there were")
    func manyTags() async throws {
        let files = SimulatedFileSystem(remembersUnsynced: false)
        let store = try await Self.open(files)
        for number in 0..<3_000 { try await store.put("k\(number)", [1], EntryDescription("m", tags: ["t\(number)"])) }
        var slowest = Duration.zero
        var all = Duration.zero
        for number in 0..<2_500 {
            let start = ContinuousClock.now
            try await store.purge(.tag("t\(number)"), now: .at(1))
            let took = start.duration(to: .now)
            slowest = max(slowest, took)
            all += took
        }
        for lane in [IOThreads.Lane.changes, .changes] { try await store.engine.threads.run(lane, isUrgent: true) {} }
        // What is marked is gone at once, and in the end its rows are, too, and then the marks.
        for number in [0, 1_023, 1_024, 2_499] { #expect(try await store.get("k\(number)").isEmpty) }
        await DiskSpaceTests.settle { store.engine.orders.withMarks { $0.count } < 2_000 }
        #expect(store.engine.orders.withMarks { $0.count } < 2_000)
        #expect(store.statistics.entryCount < 2_000)
        for number in 2_500..<3_000 { #expect(try await store.get("k\(number)").count == 1) }
        await store.close()
    }

    @Test(
        "A prefix of any length removes its keys and nothing else, and no entry becomes suspect",
        arguments: [5_000, 2 << 20]
    )
    func longPrefix(length: Int) async throws {
        let files = SimulatedFileSystem(remembersUnsynced: false)
        let first = try await Self.open(files)
        let long = String(repeating: "x", count: 6_000)
        try await first.put(long, [1])
        try await first.put("a", [1])
        try await first.purge(.keyPrefix([UInt8](repeating: UInt8(ascii: "x"), count: length)), now: .at(1))
        #expect(try await first.get(long).isEmpty == (length <= 6_000))
        await first.close()
        let second = try await Self.open(files)
        #expect(try await second.get("a").first?.needsValidation == false)
        #expect(try await second.get(long).isEmpty == (length <= 6_000))
        await second.close()
    }

    @Test("On a full device purging everything works, and the store reuses its own segments")
    func fullDevice() async throws {
        let files = SimulatedFileSystem(capacity: 6 << 20, remembersUnsynced: false)
        let store = try await Self.open(files, capacity: 32 << 20)
        for number in 0..<140 { try await store.put("k\(number)", [UInt8](repeating: 1, count: 30_000)) }
        let before = files.usedBytes
        #expect(before > 4 << 20)
        // Many times what the device holds, far below the capacity.
        for number in 0..<1_000 {
            try await store.put("n\(number)", [UInt8](repeating: 1, count: 30_000), now: .at(Int64(number) * 60))
        }
        #expect(try await store.get("n999").count == 1)
        try await store.put("blob", [UInt8](repeating: 1, count: 500_000), now: .at(100_000))
        // Someone else takes the rest.
        let filler = try files.open("/filler", .create)
        var size = 0
        while (try? files.write(ByteChunk([UInt8](repeating: 1, count: 4_096)), to: filler, at: size)) != nil {
            size += 4_096
        }
        _ = try await store.purge(.all, now: .at(200_000))
        #expect(store.statistics.entryCount == 0)
        try await store.put("after", [1], now: .at(300_000))
        files.close(filler)
        await store.close()
    }

    @Test("A record that cannot be read keeps no purge from taking effect when there are too many marks")
    func sweepBesideBadSector() async throws {
        let files = SimulatedFileSystem(remembersUnsynced: false)
        let store = try await Self.open(files)
        let engine = store.engine
        try await store.put("bad", [1])
        try await store.put("other", [1], EntryDescription("m", tags: ["other"]))
        let last = engine.orders.next()
        engine.orders.withMarks { marks in
            for tag in 0..<UInt64(PurgeMarks.bound) { marks.add(.tag(tag), order: last, horizon: .max) }
        }
        files.plan(.once(at: 0, errno: 5).only("read"))
        try await store.purge(.tag("other"), now: .at(1))
        files.plan()
        #expect(try await store.get("other").isEmpty)
        #expect(engine.orders.withMarks { $0.count } == 1)
        await store.close()
    }

    @Test("A pinned record that cannot be read fails no purge by tag")
    func markBesideBadPin() async throws {
        let files = SimulatedFileSystem(remembersUnsynced: false)
        let store = try await Self.open(files)
        let bad = try await store.put("bad", [1])
        #expect(try await store.setPinned(true, bad))
        try await store.put("other", [1], EntryDescription("m", tags: ["other"]))
        files.plan(.always(errno: 5).only("read"))
        try await store.purge(.tag("other"), now: .at(1))
        files.plan()
        #expect(try await store.get("other").isEmpty)
        await store.close()
    }

    @Test("Verifying reports a record that the device cannot read, and checks the rest")
    func verifyBesideBadSector() async throws {
        let files = SimulatedFileSystem(remembersUnsynced: false)
        let store = try await Self.open(files)
        for number in 0..<100 { try await store.put("k\(number)", [1]) }
        files.plan(.once(at: 0, errno: 5).only("read"))
        let report = try await store.verify { _ in }
        files.plan()
        #expect(report.entriesChecked == 100 && report.entriesDamaged == 1)
        await store.close()
    }

    @Test("A variant too many whose removal cannot be recorded does not fail the put that displaced it")
    func surplusVariant() async throws {
        let files = SimulatedFileSystem(remembersUnsynced: false)
        let store = try await Self.open(files)
        for number in 0..<16 { try await store.put("a", variant: "v\(number)", [1]) }
        files.plan(.once(at: 1, errno: 5).only("write"))
        try await store.put("a", variant: "v16", [1])
        files.plan()
        #expect(try await store.get("a").count == 16)
        await store.close()
    }
}

private final class Flag: Sendable {
    private let value = Atomic<Bool>(false)

    var isSet: Bool { value.load(ordering: .acquiring) }

    func set() { value.store(true, ordering: .releasing) }
}
