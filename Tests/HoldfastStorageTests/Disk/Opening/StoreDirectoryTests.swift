// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastTesting
import Testing

@testable import HoldfastStorage

@Suite("Preparing a directory: safe, locked, of the known format")
struct StoreDirectoryTests {
    private static func open(_ files: SimulatedFileSystem, _ root: String = "/store") throws -> StoreDirectory.Opened {
        var generator = SeededGenerator(seed: 3)
        let directory = StoreDirectory(layout: StoreLayout(root: root), files: files)
        return try directory.open(segmentSize: Geometry.minimumSegmentSize, using: &generator)
    }

    private static func code(_ files: SimulatedFileSystem, _ root: String = "/store") -> String? {
        do {
            _ = try open(files, root)
            return nil
        } catch {
            return (error as? StoreError)?.code.description
        }
    }

    @Test("A new directory gets its files, and the same format the next time")
    func newDirectory() throws {
        let files = SimulatedFileSystem()
        let first = try Self.open(files, "/store//")
        #expect(first.isNew)
        #expect(try files.list("/store").sorted() == ["FORMAT", "blobs", "lock", "segments"])
        #expect(try files.attributes(of: "/store").permissions & 0o777 == 0o700)
        files.close(first.lock)
        let second = try Self.open(files)
        #expect(!second.isNew)
        #expect(second.format == first.format)
        #expect(second.leftover == 0)
    }

    @Test("A directory that another store holds is refused with the holder's process ID")
    func locked() throws {
        let files = SimulatedFileSystem()
        let first = try Self.open(files)
        do {
            _ = try Self.open(files)
            Issue.record("two stores hold one directory")
        } catch let error as StoreError {
            #expect(error.code.description == "locked")
            #expect(error.message.contains("\(SystemNumber.processID)"))
        }
        files.close(first.lock)
        #expect(Self.code(files) == nil)
    }

    @Test("A path that is not absolute is refused", arguments: ["store", "", "./store", "/a\0b"])
    func relativePath(_ path: String) {
        #expect(Self.code(SimulatedFileSystem(), path) == "bad-configuration")
    }

    @Test(
        "A directory that others may write to or own, or that leads elsewhere, is refused",
        arguments: ["/store", "/store/segments"]
    )
    func unsafeDirectory(_ path: String) throws {
        for permissions in [0o720, 0o702, 0o777] as [UInt32] {
            let files = SimulatedFileSystem()
            files.close(try Self.open(files).lock)
            #expect(files.setAttributes(of: path, permissions: permissions))
            #expect(Self.code(files) == "unsafe-directory")
            #expect(files.openFileCount == 0)
        }
        let foreign = SimulatedFileSystem()
        foreign.close(try Self.open(foreign).lock)
        #expect(foreign.setAttributes(of: path, isOwn: false))
        let refusal = #expect(throws: StoreError.self) { _ = try Self.open(foreign) }
        #expect(refusal?.code == .unsafeDirectory)
        #expect(refusal?.message.contains("sudo -u USER") == true)
        let linked = SimulatedFileSystem()
        linked.close(try Self.open(linked).lock)
        #expect(linked.wipe(path))
        #expect(linked.makeLink(path))
        #expect(Self.code(linked) == "unsafe-directory")
    }

    @Test("An unknown or damaged format, or version 1, is set aside and removed; foreign files stay")
    func setsAside() throws {
        for damage in 0..<3 {
            let files = SimulatedFileSystem()
            let first = try Self.open(files)
            files.close(first.lock)
            let layout = StoreLayout(root: "/store")
            _ = files.setContents(of: layout.segment(1), to: [1])
            _ = files.setContents(of: layout.blob(2), to: [1])
            switch damage {
            case 0: files.flipBitOfCopies(at: 8)
            case 1: _ = files.setSize(of: layout.format, to: 100)
            default:
                // Version 1: magic, version, secret, checksum.
                let old = Array("HOLDFAST".utf8) + [1, 0, 0, 0] + [UInt8](repeating: 7, count: 40)
                _ = files.setContents(of: layout.format, to: old)
                for directory in ["/store/k", "/store/b"] { try files.createDirectory(directory) }
                _ = files.setContents(of: "/store/k/\(FileNumber.name(5)).key", to: [1])
                _ = files.setContents(of: "/store/k/\(FileNumber.name(5)).tmp", to: [1])
                _ = files.setContents(of: "/store/b/\(FileNumber.name(6)).body", to: [1])
            }
            _ = files.setContents(of: "/store/letter.txt", to: [1])
            let second = try Self.open(files)
            #expect(second.isNew)
            #expect(second.leftover == 0)
            #expect(try files.list("/store").sorted() == ["FORMAT", "blobs", "letter.txt", "lock", "segments"])
            #expect(try files.list(layout.segments).isEmpty)
        }
    }

    @Test("A foreign file in a directory that was set aside stays and is counted")
    func foreignFileStays() throws {
        let files = SimulatedFileSystem()
        files.close(try Self.open(files).lock)
        _ = files.setContents(of: "/store/segments/letter.txt", to: [1])
        files.flipBitOfCopies(at: 8)
        for _ in 0..<2 {
            let opened = try Self.open(files)
            #expect(opened.leftover == 4_096)
            files.close(opened.lock)
        }
        let aside = try #require(try files.list("/store").first { $0.hasPrefix("set-aside-") })
        #expect(try files.list("/store/\(aside)/segments") == ["letter.txt"])
    }

    @Test("An opening that a kill or power loss interrupts at any step succeeds the next time")
    func cutShort() throws {
        func damaged() throws -> SimulatedFileSystem {
            let files = SimulatedFileSystem()
            files.close(try Self.open(files).lock)
            files.flipBitOfCopies(at: 8)
            return files
        }
        let whole = try damaged()
        whole.plan()
        _ = try Self.open(whole)
        var generator = SeededGenerator(seed: 11)
        for step in 0..<whole.stepCount {
            for crash in [SimulatedFileSystem.Crash.process, .power(using: &generator)] {
                let files = try damaged()
                files.plan(.stop(within: step))
                _ = try? Self.open(files)
                let next = files.crashed(crash)
                let opened = try Self.open(next)
                let layout = StoreLayout(root: "/store")
                let bytes = try #require(next.contents(of: layout.format))
                #expect(FormatFile(bytes)?.format == opened.format, "step \(step), seed 11")
            }
        }
    }

    @Test("A directory whose openings were interrupted repeatedly still counts as our own")
    func cutShortAgain() throws {
        let lost = SimulatedFileSystem()
        lost.close(try Self.open(lost).lock)
        for (directory, count) in [("segments", 3), ("blobs", 3)] {
            for number in 1...UInt64(count) {
                let header = SegmentHeader(kind: .main, number: number, epoch: 1, createdOrder: 1).encode(seed: 5)
                let suffix = directory == "segments" ? ".seg" : ".blob"
                lost.setContents(of: "/store/\(directory)/\(FileNumber.name(number))\(suffix)", to: header)
            }
        }
        lost.wipe("/store/FORMAT")
        for directory in ["/", "/store", "/store/segments", "/store/blobs"] { try lost.syncDirectory(directory) }
        for seed in 0..<400 as Range<UInt64> {
            var generator = SeededGenerator(seed: seed)
            var files = (Bool.random(using: &generator) ? lost : SimulatedFileSystem()).crashed(.process)
            for _ in 0..<4 {
                files.plan(.stop(within: Int.random(in: 0..<45, using: &generator)))
                _ = try? Self.open(files)
                files = files.crashed(Bool.random(using: &generator) ? .process : .power(using: &generator))
            }
            let opened = try Self.open(files)
            files.close(opened.lock)
            let names = try files.list("/store").sorted()
            #expect(names == ["FORMAT", "blobs", "lock", "segments"], "seed \(seed): \(files.paths)")
        }
    }

    @Test("A refused step throws an error of the store and leaves no file open", arguments: [5, 28])
    func refusals(_ errno: Int32) throws {
        let whole = SimulatedFileSystem()
        _ = try Self.open(whole)
        for step in 0..<whole.stepCount {
            let files = SimulatedFileSystem()
            files.plan(.once(at: step, errno: errno))
            if let opened = try? Self.open(files) {
                files.close(opened.lock)
            } else {
                files.plan()
                #expect(Self.code(files) == nil, "step \(step)")
                #expect(files.openFileCount == 1)
                continue
            }
            #expect(files.openFileCount == 0)
        }
    }

    @Test("The format is replaced atomically: after a power loss it is the old one or the new one")
    func formatIsAtomic() throws {
        var generator = SeededGenerator(seed: 5)
        for step in 0..<8 {
            let files = SimulatedFileSystem()
            let opened = try Self.open(files)
            try files.syncDirectory("/")
            files.plan(.stop(within: step))
            _ = try? opened.manifest.write { $0.epoch = 9 }
            let isWritten = !files.isStopped
            let next = files.crashed(.power(using: &generator))
            let bytes = try #require(next.contents(of: "/store/FORMAT"))
            let found = try #require(FormatFile(bytes)).format
            #expect(found.epoch == 9 || (found.epoch == 1 && !isWritten), "step \(step), seed 5")
            #expect(found.secret == opened.format.secret)
        }
    }
}

extension StoreDirectory.Opened {
    fileprivate var format: StoreFormat { manifest.content.format }
}

extension SimulatedFileSystem {
    /// Damages both copies of what FORMAT says.
    func flipBitOfCopies(at offset: Int, bit: Int = 2) {
        for copy in FormatFile.copyOffsets { _ = flipBit(of: "/store/FORMAT", at: copy + offset, bit: bit) }
    }
}
