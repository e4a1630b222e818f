// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastStorage
import HoldfastTesting
import Testing

@Suite("SimulatedFileSystem: crashes", .timeLimit(.minutes(20)))
struct SimulatedFileSystemCrashTests {
    private func put(_ files: SimulatedFileSystem, _ path: String, _ bytes: [UInt8], syncs: Bool = false) throws {
        let file = try files.open(path, .readWrite)
        try files.write(ByteChunk(bytes), to: file, at: 0)
        if syncs { try files.sync(file) }
        files.close(file)
    }

    @Test("A killed process loses nothing it wrote; its files are closed, its locks released, the boot unchanged")
    func process() throws {
        let files = SimulatedFileSystem()
        try put(files, "/f", [1, 2, 3])
        let open = try files.open("/f", .readWrite)
        #expect(try files.lock(open))
        let unnamed = try files.open("/g", .create)
        try files.write(ByteChunk([9]), to: unnamed, at: 0)
        try files.remove("/g")
        let next = files.crashed(.process)
        #expect(files.isStopped)
        #expect(throws: FileSystemError.self) { try files.size(of: open) }
        #expect(next.contents(of: "/f") == [1, 2, 3])
        #expect(next.paths == ["/f"])
        #expect(next.usedBytes == 4_096 && next.openFileCount == 0)
        #expect(next.bootIdentity == files.bootIdentity)
        #expect(try next.lock(next.open("/f", .readWrite)))
        #expect(next.stepCount == 2)
    }

    @Test("A power loss keeps what was synced, names and bytes, whatever the seed")
    func synced() throws {
        let files = SimulatedFileSystem()
        try files.createDirectory("/d")
        try put(files, "/d/f", Array(repeating: 7, count: 10_000), syncs: true)
        try files.syncDirectory("/d")
        try files.syncDirectory("/")
        var boots: Set<[UInt8]> = []
        for seed in 0..<50 as Range<UInt64> {
            var generator = SeededGenerator(seed: seed)
            let next = files.crashed(.power(using: &generator))
            #expect(next.contents(of: "/d/f") == Array(repeating: 7, count: 10_000), "seed \(seed)")
            #expect(next.usedBytes == 3 * 4_096)
            boots.insert(next.bootIdentity)
        }
        #expect(!boots.contains(files.bootIdentity))
    }

    @Test("Each sector of an unsynced write comes from one write or another, and all mixtures occur")
    func sectors() throws {
        let files = SimulatedFileSystem()
        try put(files, "/f", Array(repeating: 1, count: 4_096), syncs: true)
        try files.syncDirectory("/")
        for value in 2...3 as ClosedRange<UInt8> { try put(files, "/f", Array(repeating: value, count: 4_096)) }
        var seen: Set<Set<UInt8>> = []
        for seed in 0..<200 as Range<UInt64> {
            var generator = SeededGenerator(seed: seed)
            let bytes = try #require(files.crashed(.power(using: &generator)).contents(of: "/f"))
            #expect(bytes.count == 4_096, "seed \(seed)")
            for sector in 0..<8 {
                let part = bytes[(sector * 512)..<(sector * 512 + 512)]
                #expect(Set(part).count == 1 && part.allSatisfy { (1...3).contains($0) }, "seed \(seed)")
            }
            seen.insert(Set(bytes))
        }
        for set in [[1], [3], [1, 2, 3], [2, 3]] as [Set<UInt8>] { #expect(seen.contains(set), "\(set)") }
    }

    @Test("An unsynced file can have any length up to its size, with zeros for what is missing")
    func sizes() throws {
        let files = SimulatedFileSystem()
        try put(files, "/f", [], syncs: true)
        try files.syncDirectory("/")
        try put(files, "/f", Array(repeating: 5, count: 3_000))
        var sizes: Set<Int> = []
        for seed in 0..<100 as Range<UInt64> {
            var generator = SeededGenerator(seed: seed)
            let bytes = try #require(files.crashed(.power(using: &generator)).contents(of: "/f"))
            #expect(bytes.count <= 3_000 && bytes.allSatisfy { $0 == 0 || $0 == 5 }, "seed \(seed)")
            sizes.insert(bytes.count)
        }
        #expect(sizes.contains(0) && sizes.contains(3_000) && sizes.count > 10)
    }

    @Test("An unsynced truncation is kept or lost")
    func cuts() throws {
        let files = SimulatedFileSystem()
        try put(files, "/f", Array(repeating: 5, count: 2_048), syncs: true)
        try files.syncDirectory("/")
        let file = try files.open("/f", .readWrite)
        try files.truncate(file, to: 512)
        var seen: Set<[UInt8]> = []
        for seed in 0..<60 as Range<UInt64> {
            var generator = SeededGenerator(seed: seed)
            let bytes = try #require(files.crashed(.power(using: &generator)).contents(of: "/f"))
            #expect(bytes.prefix(512).allSatisfy { $0 == 5 } && (512...2_048).contains(bytes.count), "seed \(seed)")
            seen.insert(bytes)
        }
        #expect(seen.contains(Array(repeating: 5, count: 512)) && seen.contains(Array(repeating: 5, count: 2_048)))
    }

    @Test("Names created, moved and removed since the last directory sync are kept or lost; a rename as a whole")
    func names() throws {
        let files = SimulatedFileSystem()
        try put(files, "/old", [1], syncs: true)
        try put(files, "/gone", [2], syncs: true)
        try put(files, "/new", [3], syncs: true)
        try files.syncDirectory("/")
        try put(files, "/made", [4], syncs: true)
        try files.rename("/new", to: "/old")
        try files.remove("/gone")
        var seen: Set<String> = []
        for seed in 0..<100 as Range<UInt64> {
            var generator = SeededGenerator(seed: seed)
            let next = files.crashed(.power(using: &generator))
            let held = next.paths.map { "\($0)\(next.contents(of: $0) ?? [])" }.joined(separator: " ")
            seen.insert(held)
        }
        let wholes = ["/new[3] /old[1]", "/old[3]"]
        let withMade = wholes + ["/made[4] /new[3] /old[1]", "/made[4] /old[3]"]
        #expect(seen == Set(withMade + withMade.map { "/gone[2] " + $0 }))
    }

    @Test("The same seed loses the same; a second power loss loses nothing more")
    func deterministic() throws {
        func run(_ seed: UInt64) throws -> [[UInt8]?] {
            let files = SimulatedFileSystem()
            for number in 0..<10 { try put(files, "/\(number)", Array(repeating: UInt8(number), count: 9_000)) }
            var generator = SeededGenerator(seed: seed)
            let next = files.crashed(.power(using: &generator))
            let left = (0..<10).map { next.contents(of: "/\($0)") }
            let second = next.crashed(.power(using: &generator))
            #expect((0..<10).map { second.contents(of: "/\($0)") } == left, "seed \(seed)")
            return left
        }
        for seed in 0..<10 as Range<UInt64> { #expect(try run(seed) == run(seed)) }
        #expect(try run(1) != run(2))
    }

    @Test("Without tracking of unsynced data nothing is lost, and nothing unlinked is kept")
    func unrecorded() throws {
        let files = SimulatedFileSystem(remembersUnsynced: false)
        try put(files, "/f", [1])
        try put(files, "/g", [2])
        try files.remove("/g")
        var generator = SeededGenerator(seed: 1)
        let next = files.crashed(.power(using: &generator))
        #expect(next.paths == ["/f"] && next.contents(of: "/f") == [1])
    }
}
