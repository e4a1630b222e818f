// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastTesting
import Synchronization
import Testing

@testable import HoldfastStorage

/// Readers, followers and cancelled tasks beside writers that make a tiny store reclaim all the time.
@Suite("DiskStore: readers during reclaim, purges and close", .timeLimit(.minutes(20)))
struct DiskStressTests {
    private static let capacity = 1 << 20
    private static let lengths = [500, 6_000, 30_000, 140_000]

    private static func open(_ files: SimulatedFileSystem) async throws -> DiskStore {
        try await DiskStore.open(directory: "/store", capacity: capacity, fileSystem: files, now: .at(0))
    }

    /// A body unlike every other one, from its first bytes on.
    private static func body(_ number: Int) -> [UInt8] {
        var generator = SeededGenerator(seed: UInt64(truncatingIfNeeded: number))
        return generator.bytes(lengths[number % lengths.count])
    }

    /// Reads an entry slowly; what is there is right to the last byte.
    private static func check(_ store: DiskStore, _ entry: StoredEntry) async throws {
        do {
            let number = try #require(Int(entry.description.text))
            let bytes = try await store.body(of: entry).whole(piece: 9_000)
            #expect(ByteChunk(bytes) == ByteChunk(body(number)))
        } catch let error as StoreError {
            #expect([.superseded, .cancelled, .closed].contains(error.code), "\(error)")
        }
    }

    private static func write(_ store: DiskStore, _ number: Int) async throws {
        let bytes = body(number)
        let code = await errorCode {
            let writer = try await store.write(
                StoreKey("k\(number % 11)"),
                variant: StoreKey("\(number % 2)"),
                description: EntryDescription("\(number)", tags: ["t\(number % 5)"]),
                expectedLength: nil,
                now: .at(0)
            )
            let follower = writer.follow()
            let reader = Task { try await follower.whole(piece: 20_000) }
            let half = bytes.count / 2
            try await writer.append(ByteChunk(bytes)[0..<half])
            try await writer.append(ByteChunk(bytes)[half..<bytes.count])
            if number % 7 == 0 { writer.abandon() } else { try await writer.commit(nil, now: .at(0)) }
            let read = try? await reader.value
            #expect(read == nil || read == bytes)
        }
        #expect([nil, .superseded, .noSpace, .abandoned, .closed].contains(code))
    }

    private static func churn(_ store: DiskStore, seed: UInt64, steps: Int, purges: Bool = true) async throws {
        var generator = SeededGenerator(seed: seed)
        for step in 0..<steps {
            let number = Int(seed) * 10_000 + step
            let key = "k\(Int.random(in: 0..<11, using: &generator))"
            switch Int.random(in: 0..<16, using: &generator) {
            case 0: try await store.invalidate(StoreKey(key))
            case 1: _ = try await store.purge(.tag("t\(step % 5)"), now: .at(0))
            case 2 where purges: _ = try await store.purge(.all, now: .at(0))
            case 3:
                let task = Task { try await write(store, number) }
                task.cancel()
                try await task.value
            case 4:
                let task = Task { for entry in try await store.get(key) { try await check(store, entry) } }
                task.cancel()
                _ = try? await task.value
            case 5..<9: for entry in try await store.get(key) { try await check(store, entry) }
            case 9:
                guard let entry = try await store.get(key).first else { continue }
                _ = try await store.replaceDescription(of: entry, with: entry.description, now: .at(0))
                _ = try await store.setPinned(step % 3 == 0, entry)
            default: try await write(store, number)
            }
        }
    }

    @Test("Every body read is whole, and nothing grows", arguments: 0..<3 as Range<UInt64>)
    func churn(seed: UInt64) async throws {
        let files = SimulatedFileSystem(remembersUnsynced: false)
        files.cachedReads = seed == 1 ? .pattern([true, false]) : .all
        let store = try await Self.open(files)
        for round in 0..<2 as Range<UInt64> {
            await withTaskGroup(of: Void.self) { group in
                for worker in 1...6 as ClosedRange<UInt64> {
                    group.addTask {
                        let code = await errorCode {
                            try await Self.churn(store, seed: seed &* 100 &+ round &* 10 &+ worker, steps: 60)
                        }
                        #expect(code == nil || code == .noSpace)
                    }
                }
            }
            let left = try await store.leftovers(files)
            #expect(left == [], "seed \(seed) round \(round)")
            #expect(files.peakBytes <= Self.capacity, "seed \(seed)")
        }
        await store.close()
    }

    @Test("An open body can be read to its end after eviction, a full purge and close", arguments: [6_000, 140_000])
    func held(length: Int) async throws {
        let files = SimulatedFileSystem(remembersUnsynced: false)
        files.cachedReads = .none
        let store = try await Self.open(files)
        let bytes = [UInt8](repeating: 7, count: length)
        let entries = [try await store.put("evicted", bytes), try await store.put("purged", bytes)]
        var bodies: [any StoredBody] = []
        for entry in entries { bodies.append(try await store.body(of: entry)) }
        for number in 0..<40 { _ = try? await store.put("other\(number)", [UInt8](repeating: 1, count: 60_000)) }
        #expect(store.statistics.entriesEvicted > 0)
        _ = try await store.purge(.all, now: .at(0))
        #expect(try await bodies[0].whole(piece: 50_000) == bytes)
        await store.close()
        for body in bodies { #expect(try await body.whole(piece: 50_000) == bytes) }
    }

    @Test(
        "Close under load ends, and the next store has what was acknowledged",
        arguments: 0..<6 as Range<UInt64>
    )
    func closing(seed: UInt64) async throws {
        let files = SimulatedFileSystem(remembersUnsynced: false)
        let store = try await Self.open(files)
        await withTaskGroup(of: Void.self) { group in
            for worker in 1...4 as ClosedRange<UInt64> {
                group.addTask { try? await Self.churn(store, seed: seed &* 10 &+ worker, steps: 40, purges: false) }
            }
            group.addTask {
                for _ in 0..<20 { await Task.yield() }
                await store.close()
            }
        }
        let isClean = store.engine.log.manifest.content.format.isClean
        #expect(isClean, "seed \(seed)")
        let next = try await Self.open(files)
        #expect(next.statistics.entriesCorrupt == 0)
        for number in 0..<11 {
            for entry in try await next.get("k\(number)") { try await Self.check(next, entry) }
        }
        #expect(try files.list("/store/blobs").count == next.blobRows)
        await next.close()
    }

    @Test("A second store on the same directory is refused until the first is closed")
    func locked() async throws {
        let files = SimulatedFileSystem()
        let first = try await Self.open(files)
        #expect(await errorCode { _ = try await Self.open(files) } == .locked)
        try await first.put("k", [1])
        await first.close()
        let second = try await Self.open(files)
        #expect(try await second.get("k").count == 1)
        await second.close()
    }

    @Test("A second store of the same process on a real directory is refused")
    func lockedForReal() async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let store = try await DiskStore.open(directory: directory.path, capacity: Self.capacity, now: .at(0))
        #expect(
            await errorCode {
                _ = try await DiskStore.open(directory: directory.path, capacity: Self.capacity, now: .at(0))
            } == .locked
        )
        await store.close()
    }
}
