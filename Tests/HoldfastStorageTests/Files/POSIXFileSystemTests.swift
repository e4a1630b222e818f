// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Testing

@testable import HoldfastStorage

@Suite("POSIXFileSystem", .timeLimit(.minutes(20)))
struct POSIXFileSystemTests {
    let files = POSIXFileSystem()

    func withDirectory(_ body: (TemporaryDirectory) throws -> Void) throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        try body(directory)
    }

    func errno(_ body: () throws -> Void) -> Int32? {
        do {
            try body()
            return nil
        } catch {
            return (error as? FileSystemError)?.errno
        }
    }

    @Test("Bytes are written and read at their offsets, and reads end with the file")
    func readAndWrite() throws {
        try withDirectory { directory in
            let path = directory.path + "/f"
            let file = try files.open(path, .create)
            defer { files.close(file) }
            try files.write(ByteChunk(Array("hello".utf8)), to: file, at: 3)
            #expect(try files.read(file, from: 0, count: 100) == [0, 0, 0] + Array("hello".utf8))
            #expect(try files.read(file, from: 4, count: 2) == Array("el".utf8))
            #expect(try files.read(file, from: 100, count: 2).isEmpty)
            #expect(try files.size(of: file) == 8)
            try files.truncate(file, to: 4)
            #expect(try files.size(of: file) == 4)
            #expect(errno { _ = try files.open(path, .create) } == EEXIST)
            #expect(errno { _ = try files.open(path + "x", .read) } == ENOENT)
        }
    }

    @Test("New files get mode 0600, new directories 0700")
    func modes() throws {
        try withDirectory { directory in
            let path = directory.path
            files.close(try files.open(path + "/f", .create))
            try files.createDirectory(path + "/d")
            #expect(try files.attributes(of: path + "/f").permissions == 0o600)
            #expect(try files.attributes(of: path + "/d").permissions == 0o700)
            #expect(try files.attributes(of: path + "/d").kind == .directory)
            #expect(try files.attributes(of: path + "/f").isOwn)
            #expect(Set(try files.list(path)) == ["f", "d"])
            try files.rename(path + "/f", to: path + "/g")
            try files.remove(path + "/g")
            try files.removeDirectory(path + "/d")
            #expect(try files.list(path).isEmpty)
        }
    }

    @Test("Of a directory entry nothing beyond its name is read: it may end where the memory does")
    func shortEntry() throws {
        let page = Int(getpagesize())
        let memory = try #require(mmap(nil, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANON, -1, 0))
        defer { munmap(memory, 2 * page) }
        #expect(mprotect(memory + page, page, PROT_NONE) == 0)
        let name = Array("0123.blob".utf8) + [0]
        let entry = memory + (page - 32)
        let offset = try #require(MemoryLayout<dirent>.offset(of: \.d_name))
        (entry + offset).copyMemory(from: name, byteCount: name.count)
        #expect(POSIXFileSystem.name(of: entry.assumingMemoryBound(to: dirent.self)) == "0123.blob")
    }

    @Test("Symbolic links are not followed")
    func links() throws {
        try withDirectory { directory in
            let path = directory.path
            files.close(try files.open(path + "/f", .create))
            try FileManager.default.createSymbolicLink(atPath: path + "/l", withDestinationPath: path + "/f")
            #expect(errno { _ = try files.open(path + "/l", .read) } == ELOOP)
            #expect(errno { _ = try files.open(path + "/l", .readWrite) } == ELOOP)
            #expect(try files.attributes(of: path + "/l").kind == .other)
        }
    }

    @Test("A lock is held by one open file at a time")
    func lock() throws {
        try withDirectory { directory in
            let first = try files.open(directory.path + "/f", .readWrite)
            let second = try files.open(directory.path + "/f", .readWrite)
            #expect(try files.lock(first))
            #expect(try files.lock(second) == false)
            files.close(first)
            #expect(try files.lock(second))
            files.close(second)
        }
    }
}
