// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastStorage
import HoldfastTesting
import Testing

@Suite("DiskStoreReader: damage, encryption and no writes", .timeLimit(.minutes(20)))
struct ReaderDamageTests {
    private static func open(_ files: any FileSystem, seal: (any StoreSeal)? = nil) async throws -> DiskStore {
        try await DiskStore.open(directory: "/store", capacity: 1 << 20, fileSystem: files, seal: seal, now: .at(0))
    }

    /// A store that was closed cleanly, with one entry in a record and one in a blob.
    private static func sample(seal: (any StoreSeal)? = nil) async throws -> SimulatedFileSystem {
        let files = SimulatedFileSystem()
        let store = try await open(files, seal: seal)
        try await store.put("small", [UInt8](repeating: 3, count: 2_000))
        try await store.put("large", [UInt8](repeating: 4, count: 100_000))
        await store.close()
        return files
    }

    /// Everything in a file system by path.
    private static func contents(_ files: SimulatedFileSystem) -> [String: [UInt8]] {
        Dictionary(uniqueKeysWithValues: files.paths.map { ($0, files.contents(of: $0) ?? []) })
    }

    @Test("No step of a reader changes anything", arguments: [false, true])
    func writesNothing(crashed: Bool) async throws {
        let made = try await Self.sample()
        let store = try await Self.open(made)
        try await store.put("more", [1])
        if !crashed { await store.close() }
        // A copy: a store that was closed may have a thread that is at its last step.
        let files = made.crashed(.process)
        let before = Self.contents(files)
        files.plan()
        let reader = try await DiskStoreReader.open(directory: "/store", fileSystem: files)
        for entry in try await reader.list(after: nil, limit: 10, now: .at(0)).listed {
            _ = try await reader.wholeBody(of: entry.entry)
        }
        _ = try await reader.verify { _ in }
        try await reader.refresh()
        await reader.close()
        #expect(Self.contents(files) == before)
        let reads: Set = ["holding", "attributes", "list", "open", "size", "read", "readIfCached"]
        #expect(Set(files.log.suffix(files.stepCount).map(\.operation)).subtracting(reads) == [])
        if crashed { await store.close() }
    }

    @Test("Damage is reported and stays; the other entries are whole")
    func damage() async throws {
        for (path, offset) in [("blobs", 70_000), ("segments", 1_000)] {
            let files = try await Self.sample()
            let name = try #require(files.paths.first { $0.contains("/\(path)/") && $0.contains(".") })
            #expect(files.flipBit(of: name, at: offset, bit: 1))
            let before = Self.contents(files)
            let reader = try await DiskStoreReader.open(directory: "/store", fileSystem: files)
            for _ in 0..<2 {
                let report = try await reader.verify { _ in }
                #expect(report.entriesDamaged == 1, "\(path)")
                #expect(report.entriesChecked == 2)
                #expect(report.damage.count == 1)
            }
            let code = await errorCode {
                for key in ["small", "large"] {
                    for entry in try await reader.get(key) { _ = try await reader.wholeBody(of: entry) }
                }
            }
            #expect(code == .corrupt)
            #expect(Self.contents(files) == before)
        }
    }

    @Test("A missing blob is reported if no other process is at work")
    func missingBlob() async throws {
        let files = try await Self.sample()
        try files.remove(try #require(files.paths.first { $0.hasSuffix(".blob") }))
        let reader = try await DiskStoreReader.open(directory: "/store", fileSystem: files)
        let report = try await reader.verify { _ in }
        #expect(report.entriesDamaged == 1)
        #expect(try await reader.get("large").isEmpty)
        #expect(try await reader.get("small").count == 1)
    }

    @Test("After a power loss entries need validation")
    func powerLoss() async throws {
        let files = SimulatedFileSystem(remembersUnsynced: false)
        let store = try await Self.open(files)
        try await store.put("a", [1])
        var generator = SeededGenerator(seed: 1)
        let next = files.crashed(.power(using: &generator))
        let reader = try await DiskStoreReader.open(directory: "/store", fileSystem: next)
        #expect(try await reader.get("a").first?.needsValidation == true)
        await store.close()
    }

    @Test("Encrypted entries are counted and checked without the key, and read with it")
    func sealed() async throws {
        let files = try await Self.sample(seal: TestSeal())
        let store = try await Self.open(files, seal: TestSeal())
        try await store.purge(.keyPrefix(Array("nothing".utf8)), now: .at(0))
        await store.close()
        let blind = try await DiskStoreReader.open(directory: "/store", fileSystem: files)
        #expect(blind.statistics.entryCount == 2)
        #expect(try await blind.list(after: nil, limit: 10, now: .at(0)).listed.isEmpty)
        #expect(blind.sealedEntriesPassedOver == 2)
        #expect(try await blind.get("small").isEmpty)
        let report = try await blind.verify { _ in }
        #expect(report.entriesSealed == 2)
        #expect(report.isClean, "\(report.damage)")
        let reader = try await DiskStoreReader.open(directory: "/store", fileSystem: files, seal: TestSeal())
        #expect(try await reader.wholeBody(of: #require(try await reader.get("large").first)).count == 100_000)
        #expect(try await reader.verify { _ in }.entriesChecked == 2)
        #expect(files.flipBit(of: try #require(files.paths.first { $0.hasSuffix(".blob") }), at: 99_000, bit: 0))
        #expect(try await blind.verify { _ in }.entriesDamaged == 1)
    }

    @Test("Random bytes in any file never trap", arguments: 1...20 as ClosedRange<UInt64>)
    func random(seed: UInt64) async throws {
        var generator = SeededGenerator(seed: seed)
        let files = try await Self.sample()
        let paths = files.paths.filter { $0.contains(".") || $0.hasSuffix("lock") || $0.hasSuffix("FORMAT") }
        for _ in 0..<Int.random(in: 1...40, using: &generator) {
            let path = try #require(paths.randomElement(using: &generator))
            let size = files.contents(of: path)?.count ?? 0
            guard size > 0 else { continue }
            _ = files.flipBit(of: path, at: Int.random(in: 0..<size, using: &generator), bit: Int(seed % 8))
        }
        guard let reader = try? await DiskStoreReader.open(directory: "/store", fileSystem: files) else { return }
        for listed in try await reader.list(after: nil, limit: 10, now: .at(0)).listed {
            guard let body = try? await reader.wholeBody(of: listed.entry) else { continue }
            #expect(body == [UInt8](repeating: body.count == 2_000 ? 3 : 4, count: body.count), "seed \(seed)")
        }
        _ = try await reader.verify { _ in }
    }
}
