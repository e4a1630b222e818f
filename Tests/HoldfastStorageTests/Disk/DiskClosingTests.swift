// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastStorage
import HoldfastTesting
import Synchronization
import Testing

@Suite("DiskStore: closing and waiting", .timeLimit(.minutes(10)))
struct DiskClosingTests {
    static func withDirectory(_ body: (String) async throws -> Void) async throws {
        let directory = FileManager.default.temporaryDirectory.appending(path: "holdfast-\(UUID().uuidString)").path
        defer { try? FileManager.default.removeItem(atPath: directory) }
        try await body(directory)
    }

    private static func withObservedStore(_ body: (DiskStore, ObservedFiles) async throws -> Void) async throws {
        try await withDirectory { directory in
            let files = ObservedFiles()
            let store = try await DiskStore.open(
                directory: directory,
                capacity: 8 << 20,
                fileSystem: files,
                now: .at(0)
            )
            try await body(store, files)
            await store.close()
        }
    }

    /// Closes a store while six writers append to it, and whatever else goes on meanwhile.
    private static func close(
        _ store: DiskStore,
        whileAppending size: Int,
        times: Int,
        beside other: @escaping @Sendable () async throws -> Void = {}
    ) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<6 {
                let writer = try await store.write(
                    StoreKey("k\(number)"),
                    variant: StoreKey(""),
                    description: EntryDescription("m"),
                    expectedLength: nil,
                    now: .at(0)
                )
                group.addTask {
                    for _ in 0..<times { try? await writer.append(ByteChunk([UInt8](repeating: 1, count: size))) }
                }
            }
            group.addTask { await store.close() }
            group.addTask { try await other() }
            try await group.waitForAll()
        }
    }

    @Test("What a closed store was still writing takes nothing from the next one")
    func closeUnderWriters() async throws {
        for _ in 0..<40 {
            try await Self.withDirectory { directory in
                let store = try await DiskStore.open(directory: directory, capacity: 2 << 20, now: .at(0))
                for number in 0..<100 { try await store.put("e\(number)", [UInt8](repeating: 7, count: 4_096)) }
                try await Self.close(store, whileAppending: 131_072, times: 3) {
                    try await Self.readAll(openingWhenFree: directory)
                }
            }
        }
    }

    @Test("A store that is closed under its writers leaves none of their files behind")
    func nothingLeft() async throws {
        try await Self.withDirectory { directory in
            var left = 0
            for _ in 0..<150 {
                let store = try await DiskStore.open(directory: directory, capacity: 8 << 20, now: .at(0))
                try await Self.close(store, whileAppending: 65_536, times: 4)
                left += try FileManager.default.contentsOfDirectory(atPath: directory + "/b").count
            }
            #expect(left == 0)
        }
    }

    private static func readAll(openingWhenFree directory: String) async throws {
        while true {
            do {
                let next = try await DiskStore.open(directory: directory, capacity: 2 << 20, now: .at(0))
                for number in 0..<100 {
                    for entry in try await next.get("e\(number)") { _ = try await next.wholeBody(of: entry) }
                }
                return await next.close()
            } catch let error as StoreError where error.code == .locked {
                await Task.yield()
            }
        }
    }

    @Test("A cancelled read of a disk that hangs ends at once")
    func cancelledRead() async throws {
        try await Self.withObservedStore { store, files in
            let entry = try await store.put("a", [UInt8](repeating: 7, count: 65_536))
            let body = try await store.body(of: entry)
            files.hangs.withLock { $0 = true }
            let before = files.reads.count
            let reading = Task { () -> StoreError.Code? in
                do throws(StoreError) {
                    _ = try await body.read(from: 0, upTo: 65_536)
                    return nil
                } catch {
                    return error.code
                }
            }
            try await files.reads.wait(for: before + 1)
            reading.cancel()
            #expect(await reading.value == .cancelled)
            files.hangs.withLock { $0 = false }
            files.gate.signal()
            #expect(try await body.read(from: 0, upTo: 10).count == 10)
        }
    }

    @Test("Short reads one after the other fetch each chunk of the file once")
    func shortReads() async throws {
        try await Self.withObservedStore { store, files in
            let bytes = (0..<200_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
            let body = try await store.body(of: try await store.put("a", bytes))
            let before = files.reads.count
            var all: [UInt8] = []
            while all.count < bytes.count {
                (try await body.read(from: all.count, upTo: 1_000)).append(to: &all)
            }
            #expect(all == bytes)
            #expect(files.reads.count - before <= 8)
        }
    }
}

/// The real files; reads are counted and can be held up.
private final class ObservedFiles: FileSystem {
    let hangs = Mutex(false)
    let gate = DispatchSemaphore(value: 0)
    let reads = CountWatch()
    private let real = POSIXFileSystem()

    func createDirectory(_ path: String) throws(FileSystemError) { try real.createDirectory(path) }
    func attributes(of path: String) throws(FileSystemError) -> FileAttributes { try real.attributes(of: path) }
    func list(_ path: String) throws(FileSystemError) -> [String] { try real.list(path) }
    func open(_ path: String, _ access: FileAccess) throws(FileSystemError) -> OpenFile { try real.open(path, access) }
    func size(of file: OpenFile) throws(FileSystemError) -> Int { try real.size(of: file) }

    func read(_ file: OpenFile, from offset: Int, count: Int) throws(FileSystemError) -> [UInt8] {
        reads.increment()
        if hangs.withLock({ $0 }) { gate.wait() }
        return try real.read(file, from: offset, count: count)
    }

    func write(_ bytes: ByteChunk, to file: OpenFile, at offset: Int) throws(FileSystemError) {
        try real.write(bytes, to: file, at: offset)
    }

    func write(_ head: ByteChunk, _ body: ByteChunk, to file: OpenFile, at offset: Int) throws(FileSystemError) {
        try real.write(head, body, to: file, at: offset)
    }

    func readIfCached(_ file: OpenFile, from offset: Int, count: Int) throws(FileSystemError) -> [UInt8]? {
        // All reads take the way on which they can be held up.
        nil
    }

    func sync(_ file: OpenFile) throws(FileSystemError) { try real.sync(file) }
    func syncDirectory(_ path: String) throws(FileSystemError) { try real.syncDirectory(path) }
    func allocate(_ file: OpenFile, size: Int) throws(FileSystemError) { try real.allocate(file, size: size) }
    func truncate(_ file: OpenFile, to size: Int) throws(FileSystemError) { try real.truncate(file, to: size) }
    func close(_ file: OpenFile) { real.close(file) }
    func rename(_ path: String, to newPath: String) throws(FileSystemError) { try real.rename(path, to: newPath) }
    func remove(_ path: String) throws(FileSystemError) { try real.remove(path) }
    func removeDirectory(_ path: String) throws(FileSystemError) { try real.removeDirectory(path) }
    func lock(_ file: OpenFile) throws(FileSystemError) -> Bool { try real.lock(file) }
    var bootIdentity: [UInt8] { real.bootIdentity }
}
