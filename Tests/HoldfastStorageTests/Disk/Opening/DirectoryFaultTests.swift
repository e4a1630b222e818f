// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastStorage
import HoldfastTesting
import Testing

/// What happens to a directory from outside: it is removed, is somebody else's, loses files or bits.
@Suite("DiskStore: changes to the directory by others", .timeLimit(.minutes(20)))
struct DirectoryFaultTests {
    private static func open(_ files: any FileSystem, _ path: String = "/store", capacity: Int = 1 << 20)
        async throws -> DiskStore
    {
        try await DiskStore.open(directory: path, capacity: capacity, fileSystem: files, now: .at(0))
    }

    private static func hex(_ number: UInt64) -> String {
        let digits = String(number, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }

    // MARK: Removed and made again

    /// A holder whose directory was removed, and the store that was made in its place.
    private static func replaced(_ files: any FileSystem, _ path: String, _ remove: () throws -> Void) async throws {
        let holder = try await open(files, path)
        for number in 0..<40 { try await holder.put("k\(number)", [UInt8](repeating: 1, count: 4_000)) }
        try remove()
        let successor = try await open(files, path)
        for number in 0..<40 { try await successor.put("k\(number)", [UInt8](repeating: 2, count: 3_000)) }
        // Far more than the capacity, so that the old holder makes and recycles segments, with bodies of their own.
        var errors: Set<String> = []
        for number in 0..<400 {
            do throws(StoreError) {
                let size = number % 9 == 0 ? 60_000 : 6_000
                try await holder.put("k\(number % 60)", [UInt8](repeating: 3, count: size), now: .at(number))
                _ = try await holder.get("k\(number % 60)", now: .at(number))
            } catch {
                errors.insert("\(error.code)")
            }
        }
        #expect(errors == ["\(StoreError.Code.temporarilyUnavailable)"])
        // What removes has nothing left to remove.
        try await holder.invalidate(StoreKey("k1"))
        _ = try await holder.purge(.tag("t"), now: .at(500))
        _ = try await holder.purge(.keyPrefix(Array("k2".utf8)), now: .at(500))
        _ = try await holder.purge(.all, now: .at(500))
        #expect(holder.peek(StoreKey("k3"), now: .at(500)) == nil)
        await holder.close()
        for number in 40..<60 { try await successor.put("k\(number)", [UInt8](repeating: 2, count: 3_000)) }
        await successor.close()
        let next = try await open(files, path)
        #expect(next.secret == successor.secret)
        for number in 0..<60 {
            let entry = try #require(try await next.get("k\(number)").first, "k\(number) is lost")
            #expect(!entry.needsValidation, "k\(number)")
            #expect(try await next.wholeBody(of: entry) == [UInt8](repeating: 2, count: 3_000), "k\(number)")
        }
        await next.close()
    }

    @Test(
        "A store whose directory was removed and recreated leaves its successor's files alone",
        arguments: [true, false]
    )
    func replacedDirectory(isWholeDirectory: Bool) async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let path = directory.path + "/store"
        try await Self.replaced(POSIXFileSystem(), path) {
            let manager = FileManager.default
            guard !isWholeDirectory else { return try manager.removeItem(atPath: path) }
            for name in try manager.contentsOfDirectory(atPath: path) {
                try manager.removeItem(atPath: path + "/" + name)
            }
        }
    }

    @Test("The same on simulated files")
    func replacedSimulatedDirectory() async throws {
        let files = SimulatedFileSystem()
        try await Self.replaced(files, "/store") { #expect(files.wipe("/store")) }
    }

    @Test("A store whose directory was moved continues in it")
    func movedDirectory() async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let (path, other) = (directory.path + "/store", directory.path + "/moved")
        let holder = try await Self.open(POSIXFileSystem(), path)
        try FileManager.default.moveItem(atPath: path, toPath: other)
        let successor = try await Self.open(POSIXFileSystem(), path)
        for number in 0..<300 { try await holder.put("k\(number % 9)", [UInt8](repeating: 1, count: 9_000)) }
        try await successor.put("k1", [2])
        await holder.close()
        await successor.close()
        let (first, second) = (
            try await Self.open(POSIXFileSystem(), other), try await Self.open(POSIXFileSystem(), path)
        )
        #expect(try await first.get("k1").first?.bodyLength == 9_000)
        #expect(try await second.get("k1").first?.bodyLength == 1)
        await first.close()
        await second.close()
    }

    // MARK: FORMAT

    @Test("One flipped bit in FORMAT loses nothing, and the next opening repairs it", arguments: [true, false])
    func formatFlips(isClosed: Bool) async throws {
        let files = SimulatedFileSystem(remembersUnsynced: false)
        let store = try await Self.open(files)
        for number in 0..<30 { try await store.put("k\(number)", [UInt8](repeating: 1, count: 4_000)) }
        _ = try await store.purge(.all, now: .at(1))
        for number in 0..<30 { try await store.put("k\(number)", [UInt8](repeating: 2, count: 4_000)) }
        try await store.invalidate(StoreKey("k7"))
        if isClosed { await store.close() }
        let original = files.crashed(.process)
        await store.close()
        let bytes = try #require(original.contents(of: "/store/FORMAT"))
        let places = bytes.indices.filter { bytes[$0] != 0 || $0 % 53 == 0 }
        for place in places {
            let damaged = original.crashed(.process)
            #expect(damaged.flipBit(of: "/store/FORMAT", at: place, bit: place % 8))
            for _ in 0..<2 {
                let again = try await Self.open(damaged)
                #expect(again.secret == store.secret, "byte \(place)")
                for number in 0..<30 {
                    let entries = try await again.get("k\(number)")
                    #expect(entries.map(\.bodyLength) == (number == 7 ? [] : [4_000]), "byte \(place)")
                    #expect(entries.allSatisfy { !$0.needsValidation }, "byte \(place) makes entries suspect")
                }
                await again.close()
            }
        }
    }

    // MARK: Segments

    /// What is done to one segment's file, or to two.
    enum Mishap: String, Sendable, CaseIterable, CustomTestStringConvertible {
        case removed, renamed, swapped, emptied
        case replacedByAnother

        var testDescription: String { rawValue }
    }

    @Test(
        "Missing, renamed or swapped segments bring nothing back that is trusted",
        arguments: Mishap.allCases,
        [true, false]
    )
    func segments(_ mishap: Mishap, isClosed: Bool) async throws {
        let files = SimulatedFileSystem(remembersUnsynced: false)
        let store = try await Self.open(files)
        for round in 1...4 {
            for number in 0..<20 {
                let key = "k\(number)"
                try await store.put(key, [UInt8](repeating: UInt8(round), count: 2_000), EntryDescription("\(round)"))
            }
        }
        for number in 0..<5 { try await store.invalidate(StoreKey("k\(number)")) }
        if isClosed { await store.close() }
        let original = files.crashed(.process)
        await store.close()
        let paths = original.paths.filter { $0.hasSuffix(".seg") }
        try #require(paths.count >= 3)
        for (index, path) in paths.enumerated() {
            let other = paths[(index + 1) % paths.count]
            let damaged = original.crashed(.process)
            let bytes = try #require(damaged.contents(of: path))
            let otherBytes = try #require(damaged.contents(of: other))
            switch mishap {
            case .removed: damaged.wipe(path)
            case .renamed:
                damaged.wipe(path)
                damaged.setContents(of: "/store/segments/\(Self.hex(0x77)).seg", to: bytes)
            case .swapped:
                damaged.setContents(of: path, to: otherBytes)
                damaged.setContents(of: other, to: bytes)
            case .emptied: damaged.setContents(of: path, to: [])
            case .replacedByAnother: damaged.setContents(of: path, to: otherBytes)
            }
            for turn in 0..<2 {
                let again = try await Self.open(damaged)
                for number in 0..<20 {
                    for entry in try await again.get("k\(number)") {
                        let isRight = number >= 5 && entry.description.text == "4"
                        #expect(
                            isRight || entry.needsValidation,
                            "\(path), turn \(turn): k\(number) is back as \(entry.description.text)"
                        )
                    }
                }
                try await again.put("new", [1])
                #expect(try await again.get("new").first?.needsValidation == false)
                await again.close()
            }
        }
    }

    @Test(
        "A kill while many writers have space in many segments makes nothing suspect",
        arguments: [1, 7, 19, 40, 61]
    )
    func manyWriters(step: Int) async throws {
        let files = SimulatedFileSystem(remembersUnsynced: false)
        let store = try await Self.open(files, capacity: 32 << 20)
        for number in 0..<40 { try await store.put("old\(number)", [1]) }
        files.plan(.stop(after: step))
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<96 {
                group.addTask { _ = try? await store.put("n\(number)", [UInt8](repeating: 3, count: 100_000)) }
            }
        }
        let left = files.crashed(.process)
        await store.close()
        let again = try await Self.open(left, capacity: 32 << 20)
        for number in 0..<40 {
            #expect(try await again.get("old\(number)").map(\.needsValidation) == [false], "old\(number)")
        }
        await again.close()
    }

    @Test("Stray files with impossible numbers do not block opening")
    func strayNumbers() async throws {
        let files = SimulatedFileSystem()
        let store = try await Self.open(files)
        try await store.put("a", [UInt8](repeating: 1, count: 30_000))
        await store.close()
        for (turn, number) in ([.max, 1 << 47, (1 << 47) - 1, 1 << 62] as [UInt64]).enumerated() {
            files.setContents(of: "/store/segments/\(Self.hex(number)).seg", to: [1, 2, 3])
            files.setContents(of: "/store/segments/\(Self.hex(number)).tmp", to: [1, 2, 3])
            files.setContents(of: "/store/blobs/\(Self.hex(number)).blob", to: [1, 2, 3])
            let again = try await Self.open(files)
            #expect(try await again.get("a").map(\.needsValidation) == [false], "turn \(turn)")
            for other in 0..<100 { try await again.put("b\(other)", [UInt8](repeating: 1, count: 5_000)) }
            try await again.put("a", [UInt8](repeating: 1, count: 30_000))
            await again.close()
        }
    }

    // MARK: Whose directory

    /// What somebody else may have in a directory, by path.
    static let foreign: [[String: String]] = [
        ["letter.txt": "mine"],
        ["blobs/\(hex(1)).blob": "a photo"],
        ["segments/\(hex(1)).tmp": "mine"],
        ["segments/\(hex(1)).seg": "a segment of a film"],
        ["lock": "the key lies under the mat"],
        ["FORMAT": "A4"],
        ["FORMAT.tmp": "A5"],
        ["k/\(hex(1)).key": "mine", "b/\(hex(1)).body": "mine"],
        ["set-aside-\(hex(1))/blobs/\(hex(2)).blob": "mine"],
        ["FORMAT": "A4", "lock": "12\n", "blobs/\(hex(1)).blob": "mine", "segments/\(hex(2)).seg": "mine"],
    ]

    @Test(
        "A directory that is neither empty nor a store is refused and left untouched",
        arguments: foreign
    )
    func foreignDirectory(_ content: [String: String]) async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let path = directory.path + "/home"
        for (name, text) in content {
            let parent = URL(fileURLWithPath: path + "/" + name).deletingLastPathComponent()
            try FileManager.default.createDirectory(at: parent, withIntermediateDirectories: true)
            try Data(text.utf8).write(to: URL(fileURLWithPath: path + "/" + name))
        }
        func found() throws -> [String: String] {
            var found: [String: String] = [:]
            for name in FileManager.default.enumerator(atPath: path)?.compactMap({ $0 as? String }) ?? [] {
                guard let data = FileManager.default.contents(atPath: path + "/" + name) else { continue }
                var isDirectory: ObjCBool = false
                _ = FileManager.default.fileExists(atPath: path + "/" + name, isDirectory: &isDirectory)
                if !isDirectory.boolValue { found[name] = String(decoding: data, as: UTF8.self) }
            }
            return found
        }
        do {
            let store = try await Self.open(POSIXFileSystem(), path)
            await store.close()
            Issue.record("opened a directory with \(content.keys.sorted())")
        } catch let error as StoreError {
            #expect(error.code == .unsafeDirectory)
            #expect(error.message.contains("empty directory"), "\(error.message)")
        }
        let left = try found()
        #expect(left == content)
    }

    @Test("A parent directory writable by anyone is refused, unless it is sticky")
    func openParent() async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let parent = directory.path + "/parent"
        try FileManager.default.createDirectory(atPath: parent, withIntermediateDirectories: false)
        for (mode, isRefused) in [(0o777, true), (0o1777, false), (0o770, false), (0o702, true), (0o755, false)] {
            try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: parent)
            let code = await errorCode {
                let store = try await Self.open(POSIXFileSystem(), parent + "/store")
                await store.close()
            }
            #expect(code == (isRefused ? .unsafeDirectory : nil), "\(String(mode, radix: 8))")
        }
    }

    @Test("If this very process holds the directory, the error says so")
    func openedTwice() async throws {
        let files = SimulatedFileSystem()
        let store = try await Self.open(files)
        do {
            _ = try await Self.open(files)
            Issue.record("opened twice")
        } catch {
            let error = try #require(error as? StoreError)
            #expect(error.code == .locked)
            #expect(error.message.contains("This process"), "\(error.message)")
            #expect(!error.message.contains("end it"), "\(error.message)")
        }
        await store.close()
    }
}
