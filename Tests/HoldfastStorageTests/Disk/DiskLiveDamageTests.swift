// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastTesting
import Testing

@testable import HoldfastStorage

@Suite("DiskStore: damage and failures while the store is open", .timeLimit(.minutes(20)))
struct DiskLiveDamageTests {
    private static func open(_ files: SimulatedFileSystem) async throws -> DiskStore {
        try await DiskStore.open(directory: "/store", capacity: 4 << 20, fileSystem: files, now: .at(0))
    }

    /// Where the bytes begin in one of the files.
    private static func find(_ bytes: [UInt8], in files: SimulatedFileSystem) throws -> (path: String, offset: Int) {
        for path in files.paths {
            let content = Data(files.contents(of: path) ?? [])
            if let range = content.range(of: Data(bytes)) { return (path, range.lowerBound) }
        }
        throw StoreError(.io, "not found")
    }

    @Test("A record damaged while the store is open is refused, counted and removed", arguments: [false, true])
    func record(isBody: Bool) async throws {
        let files = SimulatedFileSystem()
        let store = try await Self.open(files)
        let body = Array("the body to look for".utf8)
        try await store.put("a", body, EntryDescription("the words to look for"))
        try await store.put("b", [1])
        let place = try Self.find(isBody ? body : Array("the words to look for".utf8), in: files)
        #expect(files.flipBit(of: place.path, at: place.offset + 3, bit: 2))
        let code = await errorCode {
            for entry in try await store.get("a") { _ = try await store.wholeBody(of: entry) }
        }
        #expect(code == .corrupt)
        #expect(store.statistics.entriesCorrupt == 1)
        #expect(try await store.get("a").isEmpty)
        #expect(store.peek(StoreKey("a"), now: .at(0))?.isEmpty == true)
        #expect(try await store.get("b").count == 1)
        await store.close()
        let again = try await Self.open(files)
        #expect(try await again.get("a").isEmpty)
        #expect(try await again.get("b").first?.needsValidation == false)
        await again.close()
    }

    @Test("In a blob damaged while the store is open, whole chunks are served, then the entry is refused and removed")
    func blob() async throws {
        let files = SimulatedFileSystem()
        let store = try await Self.open(files)
        var generator = SeededGenerator(seed: 8)
        let bytes = generator.bytes(240_000) + [UInt8](repeating: 3, count: 400_000)
        let writer = try await store.write(
            StoreKey("a"),
            variant: StoreKey(""),
            description: EntryDescription("m"),
            expectedLength: nil,
            now: .at(0)
        )
        try await writer.append(ByteChunk(bytes))
        let entry = try await writer.commit(nil, now: .at(0))
        let blob = try #require(files.paths.first { $0.hasSuffix(".blob") })
        #expect(files.flipBit(of: blob, at: 8 * 65_536 + 7))
        let body = try await store.body(of: entry)
        #expect(try await body.read(from: 0, upTo: 60_000).array == Array(bytes.prefix(60_000)))
        #expect(await errorCode { _ = try await body.read(from: 8 * 65_520 + 10, upTo: 10) } == .corrupt)
        #expect(try await store.get("a").isEmpty)
        #expect(store.statistics.entriesCorrupt == 1)
        await store.close()
        #expect(!files.paths.contains(blob))
    }

    @Test(
        "A blob truncated or removed while the store is open is a miss",
        arguments: [nil, 0, 1, 65_536, 65_537, 70_015]
    )
    func blobGone(size: Int?) async throws {
        let files = SimulatedFileSystem()
        let store = try await Self.open(files)
        try await store.put("a", [UInt8](repeating: 5, count: 70_000))
        let blob = try #require(files.paths.first { $0.hasSuffix(".blob") })
        if let size { #expect(files.setSize(of: blob, to: size)) } else { #expect(files.wipe(blob)) }
        let entry = try #require(try await store.get("a").first)
        #expect(await errorCode { _ = try await store.wholeBody(of: entry) } == .corrupt)
        #expect(try await store.get("a").isEmpty)
        #expect(store.statistics.entriesCorrupt == 1)
        await store.close()
    }

    @Test(
        "A segment whose table is damaged while the store is open is passed over: no put is refused, and the rest is compacted",
        arguments: LogKind.allCases
    )
    func table(of kind: LogKind) async throws {
        let files = SimulatedFileSystem(remembersUnsynced: false)
        let store = try await DiskStore.open(directory: "/store", capacity: 1 << 20, fileSystem: files, now: .at(0))
        let log = store.engine.log
        // Entries fill the small log, and their tombstones the main one.
        for number in 0..<2_000 where log.ask({ $0.oldest(kind) == nil }) {
            try await store.put("k\(number)", [1])
            try await store.invalidate(StoreKey("k\(number)"))
        }
        let number = try #require(log.ask { $0.oldest(kind)?.segment.number })
        let path = log.layout.segment(number)
        let size = try #require(files.contents(of: path)).count
        #expect(files.flipBit(of: path, at: size - 1))
        for number in 0..<200 {
            try await store.put("k\(number)", [UInt8](repeating: 1, count: number.isMultiple(of: 4) ? 30_000 : 6_000))
        }
        #expect(store.statistics.entriesEvicted > 0)
        try await store.compact()
        #expect(log.ask { $0.sealed(number)?.isStuck } == true)
        #expect(store.statistics.failures > 0)
        await store.close()
    }

    @Test(
        "A damaged tombstone or tag mark is made anew when its segment is reclaimed; for a prefix, nothing is trusted",
        arguments: [nil, PurgeSelection.tag("red"), .keyPrefix(Array("a".utf8))] as [PurgeSelection?],
        [false, true]
    )
    func tombstone(_ purge: PurgeSelection?, isUnreadable: Bool) async throws {
        let files = SimulatedFileSystem()
        let store = try await Self.open(files)
        let engine = store.engine
        try await store.put("a", [1], EntryDescription("m", tags: ["red"]))
        if let purge {
            try await store.purge(purge, now: .at(0))
        } else {
            try await store.invalidate(StoreKey("a"))
        }
        let number = try await engine.threads.run(.changes) { () throws(StoreError) -> UInt64? in
            engine.log.close([.main], isCut: true)
            return engine.log.ask { $0.oldest(.main)?.segment.number }
        }
        let path = engine.log.layout.segment(try #require(number))
        if isUnreadable {
            // The first two reads are of the table.
            files.plan(.once(at: 2, errno: 5).only("read"))
        } else {
            #expect(files.flipBit(of: path, at: SegmentHeader.size + 20))
        }
        try await engine.threads.run(.changes) { () throws(StoreError) -> Void in
            guard let sealed = engine.log.ask({ $0.oldest(.main) }) else { return }
            _ = try engine.reclaimer.reclaim(sealed, mode: .carryAll, recyclingFor: nil)
        }
        files.plan()
        #expect(!files.paths.contains(path))
        let left = files.crashed(.process)
        await store.close()
        let again = try await Self.open(left)
        var isPrefix = false
        if case .keyPrefix = purge?.form { isPrefix = true }
        #expect(try await again.get("a").map(\.needsValidation) == (isPrefix ? [true] : []))
        await again.close()
    }

    @Test("If the directory vanishes, the store throws its own errors, and it can be opened again")
    func vanished() async throws {
        let files = SimulatedFileSystem()
        let store = try await Self.open(files)
        try await store.put("a", [1])
        #expect(files.wipe("/store"))
        for number in 0..<50 {
            _ = await errorCode { try await store.put("k\(number)", [UInt8](repeating: 1, count: 20_000)) }
            _ = await errorCode { _ = try await store.get("k\(number)") }
        }
        let code = await errorCode { _ = try await store.list(after: nil, limit: 10, now: .at(0)) }
        #expect(code == .temporarilyUnavailable && store.statistics.entryCount == 0)
        await store.close()
        let again = try await Self.open(files)
        #expect(try await again.get("a").isEmpty)
        try await again.put("a", [2])
        #expect(try await again.get("a").count == 1)
        await again.close()
    }

    @Test("A store pauses while the device fails and resumes within bounds", arguments: [true, false])
    func isOpen(clockMoves: Bool) async throws {
        let files = SimulatedFileSystem()
        let store = try await Self.open(files)
        let kept = try await store.put("kept", [1, 2, 3])
        files.plan(.always(errno: EIO))
        var codes: [StoreError.Code?] = []
        for _ in 0..<10 { codes.append(await errorCode { _ = try await store.put("a", [1]) }) }
        #expect(codes.first == .io && codes.last == .temporarilyUnavailable)
        #expect(store.peek(StoreKey("kept"), now: .at(0)) == nil)
        let steps = files.stepCount
        #expect(await errorCode { _ = try await store.body(of: kept) } == .temporarilyUnavailable)
        #expect(files.stepCount == steps, "a resting store leaves the device alone")
        files.plan()
        var refused = 0
        while refused < 1_000 {
            let now = StoreInstant.at(clockMoves ? 10_000 : 0)
            if let entry = try? await store.get("kept", now: now).first {
                #expect(try await store.wholeBody(of: entry) == [1, 2, 3])
                break
            }
            refused += 1
        }
        #expect(clockMoves ? refused == 0 : (1...64).contains(refused))
        try await store.put("a", [1])
        #expect(store.statistics.failures >= 4)
        await store.close()
    }

    @Test("Removals are tried during a pause, and hold in memory even if the device refuses them")
    func removalWhileResting() async throws {
        let files = SimulatedFileSystem()
        let store = try await Self.open(files)
        let removed = try await store.put("removed", [1])
        try await store.put("invalid", [1])
        files.plan(.always(errno: EIO))
        for _ in 0..<10 { _ = await errorCode { try await store.put("b", [1]) } }
        #expect(await errorCode { try await store.invalidate(StoreKey("invalid")) } == .io)
        _ = await errorCode { try await store.remove(removed) }
        files.plan()
        #expect(try await store.get("invalid", now: .at(100_000)).isEmpty)
        await store.close()
        let again = try await Self.open(files)
        #expect(try await again.get("invalid").isEmpty, "the removal was made good before closing")
        await again.close()
    }
}
