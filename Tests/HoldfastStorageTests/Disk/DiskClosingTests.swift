// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastStorage
import HoldfastTestKit
import HoldfastTesting
import Testing

@Suite("DiskStore: closing and waiting", .timeLimit(.minutes(20)))
struct DiskClosingTests {
    private static func open(_ path: String, _ files: any FileSystem = POSIXFileSystem()) async throws -> DiskStore {
        try await DiskStore.open(directory: path, capacity: 8 << 20, fileSystem: files, now: .at(0))
    }

    private static func begin(_ store: DiskStore, _ key: String) async throws -> any EntryWriter {
        try await store.write(
            StoreKey(key),
            variant: StoreKey(""),
            description: EntryDescription("m"),
            expectedLength: nil,
            now: .at(0)
        )
    }

    private static func body(_ number: Int, _ count: Int) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: ($0 &* 31) ^ ($0 >> 8) ^ number) }
    }

    // MARK: Writers

    /// Closes a store while six writers append to it, and whatever else goes on meanwhile.
    ///
    /// - Returns: the numbers of those whose commit was acknowledged.
    @discardableResult
    private static func close(
        _ store: DiskStore,
        whileAppending size: Int,
        times: Int,
        commits: Bool = true,
        beside other: @escaping @Sendable () async throws -> Void = {}
    ) async throws -> Set<Int> {
        try await withThrowingTaskGroup(of: Int?.self) { group in
            for number in 0..<6 {
                let writer = try await begin(store, "k\(number)")
                group.addTask {
                    for _ in 0..<times { try? await writer.append(ByteChunk(body(number, size))) }
                    guard commits, (try? await writer.commit(nil, now: .at(0))) != nil else { return nil }
                    return number
                }
            }
            group.addTask {
                await store.close()
                return nil
            }
            group.addTask {
                try await other()
                return nil
            }
            return try await group.reduce(into: []) { stored, number in if let number { stored.insert(number) } }
        }
    }

    /// Opens the store as soon as it is free.
    private static func openWhenFree(_ path: String) async throws -> DiskStore {
        while true {
            do {
                return try await open(path)
            } catch let error as StoreError where error.code == .locked {
                await Task.yield()
            }
        }
    }

    private static func readFirst(_ store: DiskStore) async throws {
        for number in 0..<40 {
            let entry = try #require(try await store.get("e\(number)").first, "e\(number)")
            #expect(try await store.wholeBody(of: entry) == body(number, 4_096))
        }
    }

    @Test("A commit acknowledged while the store was closing is durable and takes nothing from the next one")
    func closeUnderWriters() async throws {
        for round in 0..<8 {
            let directory = try TemporaryDirectory()
            defer { directory.remove() }
            let store = try await Self.open(directory.path)
            for number in 0..<40 { try await store.put("e\(number)", Self.body(number, 4_096)) }
            // Bodies within records and bodies with files of their own.
            let (size, times) = round % 2 == 0 ? (9_000, 2) : (131_072, 2)
            let stored = try await Self.close(store, whileAppending: size, times: times) {
                let next = try await Self.openWhenFree(directory.path)
                try await Self.readFirst(next)
                await next.close()
            }
            let last = try await Self.openWhenFree(directory.path)
            try await Self.readFirst(last)
            for number in 0..<6 {
                let entries = try await last.get("k\(number)")
                #expect(entries.count == 1 || !stored.contains(number), "round \(round): k\(number) is lost")
                for entry in entries where stored.contains(number) {
                    let part = Self.body(number, size)
                    #expect(try await last.wholeBody(of: entry) == part + part)
                }
            }
            await last.close()
        }
    }

    @Test("Files of writers that were open when the store closed are gone after it is opened again")
    func nothingLeft() async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        for round in 0..<10 {
            let store = try await Self.openWhenFree(directory.path)
            #expect(store.statistics.entryCount == 0)
            try await Self.close(store, whileAppending: 65_536, times: 4, commits: false)
            let next = try await Self.openWhenFree(directory.path)
            let left = directory.files().filter { $0.hasSuffix(".blob") || $0.hasSuffix(".tmp") }
            #expect(left.isEmpty, "round \(round)")
            await next.close()
        }
    }

    @Test("The readers of a body are told when the store is closed under its writer", arguments: [1_000, 200_000])
    func followers(size: Int) async throws {
        let files = SimulatedFileSystem()
        let store = try await Self.open("/store", files)
        let writer = try await Self.begin(store, "a")
        try await writer.append(ByteChunk(Self.body(1, size)))
        let following = Task { [body = writer.follow()] in await errorCode { _ = try await body.whole() } }
        await store.close()
        #expect(await errorCode { try await writer.append(ByteChunk([1])) } == .closed)
        #expect(await errorCode { try await writer.commit(nil, now: .at(0)) } == .closed)
        #expect(await following.value == .abandoned)
        let next = try await Self.open("/store", files)
        #expect(try await next.get("a").isEmpty)
        await next.close()
    }

    // MARK: Bodies

    @Test("Open bodies can be read on after the store was closed, even those of removed entries")
    func bodiesAfterClose() async throws {
        let files = SimulatedFileSystem()
        let store = try await Self.open("/store", files)
        let sizes = [3_000, 200_000, 700_000]
        var bodies: [(StoredEntry, any StoredBody)] = []
        for (number, size) in sizes.enumerated() {
            let entry = try await store.put("k\(number)", Self.body(number, size))
            bodies.append((entry, try await store.body(of: entry)))
            // The first bytes before, the rest after.
            #expect(try await bodies[number].1.read(from: 0, upTo: 10).count == 10)
        }
        let writer = try await Self.begin(store, "followed")
        try await writer.append(ByteChunk(Self.body(9, 300_000)))
        let followed = writer.follow()
        try await writer.commit(nil, now: .at(0))
        try await store.remove(bodies[2].0)
        await store.close()
        for (number, size) in sizes.enumerated() {
            #expect(try await bodies[number].1.whole() == Self.body(number, size))
        }
        #expect(try await followed.whole() == Self.body(9, 300_000))
        bodies = []
    }

    @Test("A closed store refuses every call, and closing it again does nothing")
    func refusals() async throws {
        let files = SimulatedFileSystem()
        let store = try await Self.open("/store", files)
        let entry = try await store.put("a", [1])
        await store.close()
        await store.close()
        let before = files.contents(of: "/store/FORMAT")
        #expect(store.peek(StoreKey("a"), now: .at(0)) == nil)
        let calls: [@Sendable () async throws -> Void] = [
            { _ = try await store.get("a") },
            { _ = try await store.body(of: entry) },
            { try await store.put("b", [1]) },
            { try await store.replaceDescription(of: entry, with: EntryDescription("n"), now: .at(0)) },
            { try await store.remove(entry) },
            { try await store.invalidate(StoreKey("a")) },
            { try await store.purge(.all, now: .at(0)) },
            { try await store.purge(.tag("t"), now: .at(0)) },
            { try await store.purge(.matching { _ in true }, now: .at(0)) },
            { _ = try await store.list(after: nil, limit: 1, now: .at(0)) },
            { try await store.setPinned(true, entry) },
        ]
        for (number, call) in calls.enumerated() { #expect(await errorCode(call) == .closed, "call \(number)") }
        #expect(files.contents(of: "/store/FORMAT") == before)
        let next = try await Self.open("/store", files)
        #expect(try await next.get("a").count == 1)
        await next.close()
    }

    @Test("What outlives a released store keeps working and then closes every file")
    func dropped() async throws {
        let files = SimulatedFileSystem()
        var store: DiskStore? = try await Self.open("/store", files)
        let entry = try #require(try await store?.put("a", Self.body(1, 200_000)))
        var body = try await store?.body(of: entry)
        var writer: (any EntryWriter)?
        if let store { writer = try await Self.begin(store, "b") }
        store = nil
        #expect(try await body?.whole() == Self.body(1, 200_000))
        try await writer?.append(ByteChunk(Self.body(2, 200_000)))
        try await writer?.commit(nil, now: .at(0))
        #expect(await errorCode { _ = try await Self.open("/store", files) } == .locked)
        (body, writer) = (nil, nil)
        // The threads let go of the store when they have done their last step.
        let next = try await Self.reopen(files)
        for (key, number) in [("a", 1), ("b", 2)] {
            let entry = try #require(try await next.get(key).first)
            #expect(try await next.wholeBody(of: entry) == Self.body(number, 200_000))
        }
        await next.close()
    }

    private static func reopen(_ files: SimulatedFileSystem) async throws -> DiskStore {
        while true {
            do {
                return try await open("/store", files)
            } catch let error as StoreError where error.code == .locked {
                await Task.yield()
            }
        }
    }

    // MARK: Waiting

    @Test("A cancelled read of a hanging disk ends at once", arguments: [true, false])
    func cancelledRead(ofBody: Bool) async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let files = HangingFiles()
        let store = try await Self.open(directory.path, files)
        let body = try await store.body(of: try await store.put("a", Self.body(1, 200_000)))
        files.hang()
        let before = files.reads.count
        let reading = Task {
            await errorCode {
                if ofBody { _ = try await body.read(from: 0, upTo: 65_536) } else { _ = try await store.get("a") }
            }
        }
        try await files.reads.wait(for: before + 1)
        reading.cancel()
        #expect(await reading.value == .cancelled)
        files.goOn()
        #expect(try await body.read(from: 0, upTo: 10) == ByteChunk(Self.body(1, 10)))
        #expect(try await store.get("a").count == 1)
        await store.close()
    }

    @Test("Consecutive short reads fetch each chunk of the file once")
    func shortReads() async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let files = HangingFiles()
        let store = try await Self.open(directory.path, files)
        let bytes = Self.body(1, 400_000)
        let body = try await store.body(of: try await store.put("a", bytes))
        let before = files.reads.count
        #expect(try await body.whole(piece: 1_000) == bytes)
        #expect(files.reads.count - before <= 4)
        await store.close()
    }

    // MARK: A device that fails

    @Test(
        "A store whose device fails at any step, also while it copies what it keeps, can be closed",
        .timeLimit(.minutes(20)),
        arguments: 0..<4
    )
    func failedCopy(_ number: Int) async throws {
        let bytes = ByteChunk(Self.body(number, 20_000))
        let distance = LongTests.areOn ? 24 : 72
        for step in stride(from: 300 + distance / 4 * number, to: 1_500, by: distance) {
            var random = SeededGenerator(seed: UInt64(step))
            let files = SimulatedFileSystem(remembersUnsynced: false)
            let store = try await DiskStore.open(directory: "/store", capacity: 1 << 20, fileSystem: files, now: .at(0))
            files.plan(.stop(after: step))
            for _ in 0..<2_000 where !files.isStopped {
                let key = StoreKey("k\(Int.random(in: 0..<200, using: &random))")
                let size = Int.random(in: 0..<20_000, using: &random)
                if Bool.random(using: &random) {
                    _ = try? await store.put(
                        key,
                        variant: StoreKey(""),
                        description: EntryDescription("m"),
                        body: bytes[0..<size],
                        now: .at(0)
                    )
                } else if let entry = try? await store.entries(for: key, now: .at(0)).first {
                    _ = try? await store.setPinned(Int.random(in: 0..<8, using: &random) == 0, entry)
                }
            }
            await store.close()
        }
    }
}
