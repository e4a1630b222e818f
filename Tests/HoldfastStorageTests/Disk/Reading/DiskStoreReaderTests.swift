// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastStorage
import HoldfastTesting
import Testing

@Suite("DiskStoreReader: beside a store", .timeLimit(.minutes(20)))
struct DiskStoreReaderTests {
    private static func open(_ files: any FileSystem, capacity: Int = 1 << 20) async throws -> DiskStore {
        try await DiskStore.open(directory: "/store", capacity: capacity, fileSystem: files, now: .at(0))
    }

    @Test(
        "The contents of a store are visible while it is open, after a clean close and after a kill",
        arguments: 0..<3
    )
    func shows(way: Int) async throws {
        let files = SimulatedFileSystem()
        let store = try await Self.open(files)
        let large = [UInt8](repeating: 7, count: 100_000)
        try await store.put("a", [1, 2, 3], EntryDescription("first", tags: ["t"]))
        try await store.put("a", variant: "v", [4])
        try await store.put("b", large)
        try await store.put("c", [9])
        let freshened = try await store.replaceDescription(
            of: #require(try await store.get("c").first),
            with: EntryDescription("freshened"),
            now: .at(5)
        )
        try await store.put("gone", [5])
        try await store.invalidate(StoreKey("gone"))
        try await store.put("tagged", [6], EntryDescription("meta", tags: ["doomed"]))
        try await store.purge(.tag("doomed"), now: .at(1))
        if way == 1 { await store.close() }
        let seen = way == 2 ? files.crashed(.process) : files
        let reader = try await DiskStoreReader.open(directory: "/store", fileSystem: seen)
        #expect(reader.secret == store.secret)
        #expect(try await reader.get("a").map(\.description.text) == ["meta", "first"])
        let first = try #require(try await reader.get("a").last)
        #expect(first.description.tags == ["t"])
        #expect(try await reader.wholeBody(of: first) == [1, 2, 3])
        #expect(try await reader.wholeBody(of: #require(try await reader.get("b").first)) == large)
        let entry = try #require(try await reader.get("c").first)
        #expect(entry.version == freshened?.version)
        #expect(entry.description.text == "freshened")
        #expect(!entry.needsValidation)
        #expect(try await reader.get("gone").isEmpty)
        #expect(try await reader.get("tagged").isEmpty)
        #expect(reader.peek(StoreKey("never"), now: .at(0))?.isEmpty == true)
        #expect(reader.peek(StoreKey("a"), now: .at(0)) == nil)
        let page = try await reader.list(after: nil, limit: 100, now: .at(0))
        #expect(page.listed.count == 4)
        #expect(page.next == nil)
        let report = try await reader.verify { _ in }
        #expect(report.isClean)
        #expect(report.entriesChecked == 4)
        #expect(report.bodyBytesChecked == 100_005)
        #expect((reader.holder == nil) == (way == 1))
        await reader.close()
        #expect(await errorCode { _ = try await reader.get("a") } == .closed)
        if way != 1 { await store.close() }
    }

    @Test("Every operation that would change something is refused, and the error names the holder")
    func refuses() async throws {
        let files = SimulatedFileSystem()
        let store = try await Self.open(files)
        let entry = try await store.put("a", [1])
        let reader = try await DiskStoreReader.open(directory: "/store", fileSystem: files)
        let pid = "\(ProcessInfo.processInfo.processIdentifier)"
        let operations: [@Sendable () async throws -> Void] = [
            { try await reader.put("b", [1]) },
            { try await reader.remove(entry) },
            { try await reader.invalidate(StoreKey("a")) },
            { try await reader.purge(.all, now: .at(0)) },
            { try await reader.setPinned(true, entry) },
            { try await reader.compact() },
            { try await reader.replaceDescription(of: entry, with: entry.description, now: .at(0)) },
        ]
        for operation in operations {
            let error = await #expect(throws: StoreError.self) { try await operation() }
            #expect(error?.code == .readOnly)
            #expect(error?.message.contains(pid) == true)
        }
        await store.close()
        let after = try await DiskStoreReader.open(directory: "/store", fileSystem: files)
        let error = await #expect(throws: StoreError.self) { try await after.compact() }
        #expect(error?.code == .readOnly)
        #expect(error?.message.contains(pid) == false)
    }

    @Test("Newer entries appear after a refresh, and removed ones disappear")
    func refreshes() async throws {
        let files = SimulatedFileSystem()
        let store = try await Self.open(files)
        try await store.put("a", [1])
        let reader = try await DiskStoreReader.open(directory: "/store", fileSystem: files)
        try await store.put("b", [2])
        try await store.invalidate(StoreKey("a"))
        #expect(try await reader.get("b").isEmpty)
        #expect(try await reader.get("a").count == 1)
        try await reader.refresh()
        #expect(try await reader.get("b").count == 1)
        #expect(try await reader.get("a").isEmpty)
        try await store.purge(.all, now: .at(0))
        #expect(try await reader.get("b").isEmpty, "its segment went with the purge")
        #expect(reader.statistics.entryCount == 0)
        await store.close()
    }

    @Test("A recreated directory is another store")
    func replaced() async throws {
        let files = SimulatedFileSystem()
        let first = try await Self.open(files)
        try await first.put("a", [1])
        await first.close()
        let reader = try await DiskStoreReader.open(directory: "/store", fileSystem: files)
        for copy in [0, 4_096] { #expect(files.flipBit(of: "/store/FORMAT", at: copy + 20, bit: 2)) }
        await (try Self.open(files)).close()
        #expect(await errorCode { try await reader.refresh() } == .closed)
        #expect(await errorCode { _ = try await reader.get("a") } == .closed)
    }

    @Test("A directory that is unsafe or not a store is refused and left unchanged")
    func refused() async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let (path, manager) = (directory.path, FileManager.default)
        try directory.write([], to: "file")
        try manager.createDirectory(atPath: path + "/empty", withIntermediateDirectories: false)
        try manager.createSymbolicLink(atPath: path + "/link", withDestinationPath: path + "/empty")
        for (name, code) in [
            ("/empty", StoreError.Code.badConfiguration), ("/missing", .badConfiguration), ("/file", .unsafeDirectory),
            ("/link", .unsafeDirectory),
        ] {
            let found = await errorCode { _ = try await DiskStoreReader.open(directory: path + name) }
            #expect(found == code, "\(name)")
        }
        let missing = await #expect(throws: StoreError.self) {
            _ = try await DiskStoreReader.open(directory: path + "/missing")
        }
        #expect(missing?.message.contains("Check the path") == true)
        #expect(await errorCode { _ = try await DiskStoreReader.open(directory: "relative") } == .badConfiguration)
        #expect(try manager.contentsOfDirectory(atPath: path + "/empty").isEmpty)
        let files = SimulatedFileSystem()
        await (try Self.open(files)).close()
        #expect(files.setAttributes(of: "/store", permissions: 0o722))
        let unsafe = await errorCode { _ = try await DiskStoreReader.open(directory: "/store", fileSystem: files) }
        #expect(unsafe == .unsafeDirectory)
        #expect(files.setAttributes(of: "/store", permissions: 0o700))
        for copy in [0, 4_096] { #expect(files.flipBit(of: "/store/FORMAT", at: copy + 8, bit: 2)) }
        let unknown = await errorCode { _ = try await DiskStoreReader.open(directory: "/store", fileSystem: files) }
        #expect(unknown == .badConfiguration)
    }

    @Test("Opening with the right capacity evicts nothing", arguments: [1 << 20, 5 << 20, 24 << 20])
    func fits(capacity: Int) async throws {
        let files = SimulatedFileSystem(remembersUnsynced: false)
        let store = try await Self.open(files, capacity: capacity)
        for number in 0..<60 { try await store.put("k\(number)", [UInt8](repeating: 1, count: 10_000)) }
        let count = store.statistics.entryCount
        await store.close()
        let reader = try await DiskStoreReader.open(directory: "/store", fileSystem: files)
        #expect(reader.statistics.entryCount == count)
        #expect(reader.statistics.bytesUsed <= capacity)
        #expect(reader.fittingCapacity >= capacity / 2)
        let again = try await Self.open(files, capacity: reader.fittingCapacity)
        #expect(again.statistics.entryCount == count)
        #expect(again.statistics.entriesEvicted == 0)
        await again.close()
    }
}
