// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastTesting
import Synchronization
import Testing

@testable import HoldfastStorage

/// A store is changed at random, and reclaims all the while, as a reader lists it and reads bodies.
@Suite("DiskStoreReader: beside a changing store", .timeLimit(.minutes(20)))
struct ReaderWalkTests {
    /// What was stored so far, and what may be there now.
    private final class Ledger: Sendable {
        struct State {
            /// Every stamp ever stored, by key.
            var ever: [String: Set<UInt64>] = [:]
            /// Stamps that were gone by the end of the operation with this number.
            var goneAt: [UInt64: Int] = [:]
            var operations = 0
        }
        let state = Mutex(State())
        let isDone = Atomic<Bool>(false)
        let reads = Atomic<Int>(0)
    }

    private static let anchors: UInt64 = 12

    /// A body that says whose it is: its stamp over and over.
    private static func body(_ stamp: UInt64, _ count: Int) -> [UInt8] {
        var generator = SeededGenerator(seed: stamp)
        return withUnsafeBytes(of: stamp.littleEndian) { Array($0) } + generator.bytes(count - 8)
    }

    private static func stamp(of body: [UInt8]) -> UInt64? {
        guard body.count >= 8 else { return nil }
        let stamp = (0..<8).reduce(UInt64(0)) { $0 | UInt64(body[$1]) << (8 * UInt64($1)) }
        return ByteChunk(body) == ByteChunk(Self.body(stamp, body.count)) ? stamp : nil
    }

    private static func change(
        _ store: DiskStore,
        _ quota: Ledger,
        purgesAll: Bool,
        _ generator: inout SeededGenerator
    ) async throws {
        let key = "key \(Int.random(in: 0..<40, using: &generator))"
        let stamp = UInt64.random(in: .min ... .max, using: &generator)
        let count = [8, 900, 6_000, 30_000].randomElement(using: &generator) ?? 8
        let action = Int.random(in: (purgesAll ? 0 : 1)..<60, using: &generator)
        var gone: Set<UInt64> = []
        switch action {
        case 0:
            gone = quota.state.withLock { Set($0.ever.values.joined()) }
            try await store.purge(.all, now: .at(0))
        case 1...3:
            gone = quota.state.withLock { $0.ever[key] ?? [] }
            try await store.invalidate(StoreKey(key))
        case 4...6:
            gone = quota.state.withLock { $0.ever[key] ?? [] }
            try await store.purge(.tag(key), now: .at(0))
        case 7...12:
            if let entry = try await store.get(key).first {
                try await store.replaceDescription(
                    of: entry,
                    with: EntryDescription("freshened", tags: [key]),
                    now: .at(1)
                )
            }
        default:
            gone = quota.state.withLock { state in
                let before = state.ever[key] ?? []
                state.ever[key, default: []].insert(stamp)
                return before
            }
            do {
                try await store.put(key, body(stamp, count), EntryDescription("meta", tags: [key]))
            } catch {
                // No room for a moment: then what was there stays.
                gone = []
            }
        }
        let taken = gone
        quota.state.withLock { state in
            state.operations += 1
            for stamp in taken where state.goneAt[stamp] == nil { state.goneAt[stamp] = state.operations }
        }
    }

    @Test(
        "Each body read was stored under its key, and none was gone at the last refresh",
        arguments: 1...3 as ClosedRange<UInt64>
    )
    func walk(seed: UInt64) async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let path = directory.path + "/store"
        let store = try await DiskStore.open(directory: path, capacity: 1 << 20, now: .at(0))
        let quota = Ledger()
        if seed != 3 {
            // What is pinned moves from segment to segment and is there all the time.
            for stamp in 0..<Self.anchors {
                let entry = try await store.put("anchor \(stamp)", Self.body(stamp, 600))
                quota.state.withLock { $0.ever["anchor \(stamp)"] = [stamp] }
                #expect(try await store.setPinned(true, entry))
            }
        }
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                var generator = SeededGenerator(seed: seed)
                defer { quota.isDone.store(true, ordering: .releasing) }
                // The reader is to have had its share, and the writer an end.
                for turn in 0..<6_000 where turn < 1_500 || quota.reads.load(ordering: .relaxed) < 300 {
                    try await Self.change(store, quota, purgesAll: seed == 3, &generator)
                    await Task.yield()
                }
            }
            group.addTask {
                let reader = try await DiskStoreReader.open(directory: path)
                while !quota.isDone.load(ordering: .acquiring) {
                    let before = quota.state.withLock { $0.operations }
                    do {
                        try await reader.refresh()
                    } catch {
                        guard (error as? StoreError)?.code == .temporarilyUnavailable else { throw error }
                        continue
                    }
                    try await Self.look(at: reader, quota, since: before, seed)
                }
                #expect(reader.statistics.entriesCorrupt == 0, "seed \(seed)")
                await reader.close()
            }
            try await group.waitForAll()
        }
        #expect(quota.reads.load(ordering: .relaxed) > 0)
        let segments = try FileManager.default.contentsOfDirectory(atPath: path + "/segments")
        #expect(!segments.contains(FileNumber.name(1) + ".seg"), "nothing was reclaimed")
        await store.close()
    }

    private static func look(
        at reader: DiskStoreReader,
        _ quota: Ledger,
        since before: Int,
        _ seed: UInt64
    ) async throws {
        var cursor: StoreCursor?
        var seen: Set<StoreKey> = []
        repeat {
            let page = try await reader.list(after: cursor, limit: 7, now: .at(0))
            for entry in page.listed.map(\.entry) {
                #expect(seen.insert(entry.key).inserted, "seed \(seed): listed twice")
                let key = String(decoding: entry.key.bytes, as: UTF8.self)
                let bytes: [UInt8]
                do {
                    bytes = try await reader.wholeBody(of: entry)
                } catch {
                    #expect(error.code == .superseded, "seed \(seed): \(error)")
                    continue
                }
                quota.reads.add(1, ordering: .relaxed)
                let stamp = try #require(Self.stamp(of: bytes), "seed \(seed): a body in pieces")
                let (isOurs, goneAt) = quota.state.withLock {
                    ($0.ever[key]?.contains(stamp) ?? false, $0.goneAt[stamp])
                }
                #expect(isOurs, "seed \(seed): a body of another key")
                if let goneAt { #expect(goneAt > before, "seed \(seed): gone since \(goneAt), looked at \(before)") }
            }
            cursor = page.next
        } while cursor != nil
        if seed != 3 {
            for stamp in 0..<Self.anchors {
                #expect(seen.contains(StoreKey("anchor \(stamp)")), "seed \(seed): what stayed was not listed")
            }
        }
    }
}
