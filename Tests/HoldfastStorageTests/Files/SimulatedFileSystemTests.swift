// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastStorage
import HoldfastTesting
import Testing

/// The laws of the port, held by the machine's files and the simulated ones alike.
@Suite("SimulatedFileSystem", .timeLimit(.minutes(20)))
struct SimulatedFileSystemTests {
    func errno(_ body: () throws -> Void) -> Int32? {
        do {
            try body()
            return nil
        } catch {
            return (error as? FileSystemError)?.errno
        }
    }

    func chunk(_ text: String) -> ByteChunk { ByteChunk(copying: text.utf8) }

    func text(_ bytes: [UInt8]?) -> String? { bytes.map { String(decoding: $0, as: UTF8.self) } }

    /// A file system and a directory in it that is there.
    private func onBoth(_ body: (any FileSystem, String) throws -> Void) throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        try body(POSIXFileSystem(), directory.path)
        let simulated = SimulatedFileSystem()
        try simulated.createDirectory("/d")
        try body(simulated, "/d")
        #expect(simulated.openFileCount == 0, "the law closed what it opened")
    }

    @Test("The same script gives the same results as real files, errors included")
    func script() throws {
        var answers: [[String]] = []
        try onBoth { files, root in
            var lines: [String] = []
            func note(_ body: () throws -> Any) {
                do {
                    lines.append("\(try body())")
                } catch {
                    lines.append("errno \((error as? FileSystemError)?.errno ?? -1)")
                }
            }
            note { try files.createDirectory(root) }
            note { try files.createDirectory(root + "/no/way") }
            note { try files.open(root + "/f", .read).descriptor }
            let file = try files.open(root + "/f", .create)
            note { try files.open(root + "/f", .create).descriptor }
            note { try files.open(root + "/f/g", .readWrite).descriptor }
            note { try files.open(root, .readWrite).descriptor }
            note { try files.write(chunk("hello"), to: file, at: 4_094) }
            note { try files.read(file, from: 4_090, count: 100) }
            note { try files.read(file, from: 5_000, count: 1) }
            note { try files.read(file, from: -1, count: 1) }
            note { try files.write(chunk("x"), to: file, at: -1) }
            note { try files.write(chunk("head"), chunk("body"), to: file, at: 1) }
            note { try files.read(file, from: 0, count: 10) }
            note { try files.truncate(file, to: 3) }
            note { try files.truncate(file, to: 6) }
            note { try files.truncate(file, to: -1) }
            note { try files.read(file, from: 0, count: 10) }
            note { try files.allocate(file, size: 5_000) }
            note { try files.size(of: file) }
            note { try files.rename(root + "/f", to: root + "/g") }
            note { try files.rename(root + "/f", to: root + "/h") }
            note { try files.rename(root + "/g", to: root + "/g") }
            note { try files.createDirectory(root + "/sub") }
            note { try files.rename(root + "/g", to: root + "/sub") }
            note { try files.rename(root + "/sub", to: root + "/g") }
            note { try files.rename(root + "/sub", to: root + "/sub/sub") }
            note { try files.list(root).sorted() }
            note { try files.list(root + "/g") }
            note { try files.attributes(of: root + "/g") }
            note { try files.attributes(of: root + "/sub").permissions }
            let other = try files.open(root + "/sub/x", .readWrite)
            note { try files.removeDirectory(root + "/sub") }
            note { try files.remove(root + "/sub") }
            note { try files.removeDirectory(root + "/sub/x") }
            note { try files.lock(other) }
            let again = try files.open(root + "/sub/x", .readWrite)
            note { try files.lock(again) }
            note { try files.lock(other) }
            files.close(other)
            note { try files.lock(again) }
            note { try files.remove(root + "/sub/x") }
            note { try files.write(chunk("still"), to: again, at: 0) }
            note { try files.read(again, from: 0, count: 9) }
            note { try files.readIfCached(again, from: 1, count: 99) as Any }
            note { try files.removeDirectory(root + "/sub") }
            note { try files.removeDirectory(root + "/sub") }
            note { try files.syncDirectory(root) }
            note { try files.syncDirectory(root + "/g") }
            let reader = try files.open(root + "/g", .read)
            note { try files.write(chunk("no"), to: reader, at: 0) }
            note { try files.sync(file) }
            for file in [again, reader, file] { files.close(file) }
            note { try files.size(of: reader) }
            answers.append(lines)
        }
        for (index, pair) in zip(answers[0], answers[1]).enumerated() { #expect(pair.0 == pair.1, "line \(index)") }
        #expect(answers[0].count == answers[1].count)
    }

    @Test(
        "Random writes, truncations and reads give the same results as real files",
        arguments: 0..<20 as Range<UInt64>
    )
    func random(_ seed: UInt64) throws {
        var answers: [[UInt8]] = []
        try onBoth { files, root in
            var generator = SeededGenerator(seed: seed)
            let file = try files.open(root + "/f", .readWrite)
            defer { files.close(file) }
            var all: [UInt8] = []
            for _ in 0..<60 {
                let offset = Int.random(in: 0..<20_000, using: &generator)
                switch Int.random(in: 0..<4, using: &generator) {
                case 0: try files.truncate(file, to: offset)
                case 1: all += try files.read(file, from: offset, count: 5_000)
                default:
                    let bytes = generator.bytes(Int.random(in: 0..<6_000, using: &generator))
                    try files.write(ByteChunk(bytes), to: file, at: offset)
                }
            }
            answers.append(all + (try files.read(file, from: 0, count: 40_000)))
        }
        #expect(answers[0] == answers[1], "seed \(seed)")
    }

    @Test("Blocks are counted: holes are free, open unlinked files are not, and the peak is kept")
    func space() throws {
        let files = SimulatedFileSystem(capacity: 5 * 4_096 + 100)
        #expect(files.capacity == 5 * 4_096)
        let file = try files.open("/f", .create)
        try files.write(chunk("x"), to: file, at: 3 * 4_096)
        #expect(files.usedBytes == 4_096)
        try files.truncate(file, to: 100_000)
        #expect(files.usedBytes == 4_096)
        try files.allocate(file, size: 8_193)
        #expect(files.usedBytes == 4 * 4_096)
        #expect(errno { try files.write(ByteChunk(Array(repeating: 1, count: 9_000)), to: file, at: 16_384) } == ENOSPC)
        #expect(try files.read(file, from: 16_384, count: 4_097) == Array(repeating: 1, count: 4_096) + [0])
        try files.write(chunk("inside"), to: file, at: 0)
        try files.remove("/f")
        #expect(files.usedBytes == 5 * 4_096)
        files.close(file)
        #expect(files.usedBytes == 0)
        #expect(files.peakBytes == 5 * 4_096)
        let next = try files.open("/g", .create)
        #expect(errno { try files.allocate(next, size: 6 * 4_096) } == ENOSPC)
        files.capacity = nil
        try files.allocate(next, size: 6 * 4_096)
        try files.truncate(next, to: 1)
        #expect(files.usedBytes == 4_096)
    }

    @Test("A file that is replaced by a rename is freed")
    func replaced() throws {
        let files = SimulatedFileSystem()
        for name in ["/a", "/b"] {
            let file = try files.open(name, .create)
            try files.write(chunk(name), to: file, at: 0)
            files.close(file)
        }
        try files.rename("/a", to: "/b")
        #expect(text(files.contents(of: "/b")) == "/a")
        #expect(files.usedBytes == 4_096)
        #expect(files.paths == ["/b"])
    }

    @Test("Damage made by the test: bits, sizes, contents, links, attributes, and a whole directory")
    func damage() throws {
        let files = SimulatedFileSystem()
        try files.createDirectory("/d")
        #expect(files.setContents(of: "/d/f", to: [1, 2, 3]))
        #expect(!files.setContents(of: "/no/f", to: []))
        #expect(files.flipBit(of: "/d/f", at: 1, bit: 7))
        #expect(!files.flipBit(of: "/d/f", at: 3) && !files.flipBit(of: "/d/f", at: -1))
        #expect(files.contents(of: "/d/f") == [1, 130, 3])
        #expect(files.setSize(of: "/d/f", to: 2))
        #expect(files.contents(of: "/d/f") == [1, 130])
        #expect(files.makeLink("/d/l"))
        #expect(errno { _ = try files.open("/d/l", .read) } == ELOOP)
        #expect(files.setAttributes(of: "/d", permissions: 0o777, isOwn: false))
        let attributes = try files.attributes(of: "/d")
        #expect(attributes.permissions == 0o777 && !attributes.isOwn)
        #expect(files.wipe("/d"))
        #expect(files.paths.isEmpty && files.usedBytes == 0 && files.contents(of: "/d/f") == nil)
    }
}
