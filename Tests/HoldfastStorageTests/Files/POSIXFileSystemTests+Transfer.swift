// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastStorage
import Testing

extension POSIXFileSystemTests {
    static let lengths = [(0, 0), (0, 5), (5, 0), (1, 1), (104, 16_384), (4_096, 1 << 20)]

    private func bytes(_ count: Int, from first: Int) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: ($0 &+ first) &* 31) }
    }

    @Test("A gathered write writes head and body without a gap", arguments: lengths)
    func gathered(_ head: Int, _ body: Int) throws {
        try withDirectory { directory in
            let file = try files.open(directory.path + "/f", .create)
            defer { files.close(file) }
            let all = bytes(head + body, from: 7)
            let chunk = ByteChunk(all)
            try files.write(chunk[0..<head], chunk[head..<all.count], to: file, at: 16)
            #expect(try files.read(file, from: 16, count: all.count + 1) == all)
            #expect(try files.size(of: file) == (all.isEmpty ? 0 : 16 + all.count))
        }
    }

    @Test("Reads and writes at impossible offsets are refused and do not trap", arguments: [-1, Int.min, Int.max])
    func places(_ offset: Int) throws {
        try withDirectory { directory in
            let file = try files.open(directory.path + "/f", .create)
            defer { files.close(file) }
            let chunk = ByteChunk([1, 2])
            #expect(errno { try files.write(chunk, to: file, at: offset) } != nil)
            #expect(errno { try files.write(chunk, chunk, to: file, at: offset) } != nil)
            #expect(((try? files.readIfCached(file, from: offset, count: 2)) ?? nil) == nil)
            #expect(try files.size(of: file) == 0)
        }
    }

    @Test("A read of cached bytes gives all of them or nil, and nil past the end")
    func readIfCached() throws {
        try withDirectory { directory in
            let file = try files.open(directory.path + "/f", .create)
            defer { files.close(file) }
            let all = bytes(20_000, from: 1)
            try files.write(ByteChunk(all), to: file, at: 0)
            for (offset, count) in [(0, 20_000), (1, 1), (4_095, 2), (19_999, 1)] {
                let got = try files.readIfCached(file, from: offset, count: count)
                #expect(got == nil || got == Array(all[offset..<(offset + count)]))
            }
            #expect(try files.readIfCached(file, from: 19_999, count: 2) == nil)
            #expect(try files.readIfCached(file, from: 50_000, count: 2) == nil)
            #expect(try files.readIfCached(file, from: 0, count: 0)?.isEmpty == true)
            #expect(errno { _ = try files.readIfCached(OpenFile(descriptor: -1), from: 0, count: 1) } ?? EBADF == EBADF)
        }
    }

    @Test("A read into the caller's memory gives the same bytes", arguments: [true, false])
    func readInto(waits: Bool) throws {
        try withDirectory { directory in
            let file = try files.open(directory.path + "/f", .create)
            defer { files.close(file) }
            let all = bytes(20_000, from: 1)
            try files.write(ByteChunk(all), to: file, at: 0)
            for (offset, count) in [(0, 20_000), (1, 1), (4_095, 2), (19_999, 1), (5, 0), (19_999, 2), (50_000, 2)] {
                var room = [UInt8](repeating: 0, count: count)
                let got = try room.withUnsafeMutableBytes { try files.read(file, from: offset, into: $0, waits: waits) }
                let there = Array(all[min(offset, all.count)..<min(offset + count, all.count)])
                if waits || count == 0 {
                    #expect(got == there.count)
                } else {
                    #expect(got == nil || got == count)
                    if there.count < count { #expect(got == nil) }
                }
                if let got { #expect(Array(room[0..<got]) == there) }
            }
        }
    }

    @Test("Allocating extends the file, keeps its bytes and truncates nothing")
    func allocate() throws {
        try withDirectory { directory in
            let file = try files.open(directory.path + "/f", .create)
            defer { files.close(file) }
            try files.write(ByteChunk([1, 2, 3]), to: file, at: 0)
            try files.allocate(file, size: 10_000)
            #expect(try files.size(of: file) == 10_000)
            #expect(try files.read(file, from: 0, count: 4) == [1, 2, 3, 0])
            for size in [5_000, 0, -1] {
                try files.allocate(file, size: size)
                #expect(try files.size(of: file) == 10_000)
            }
            #if os(Linux)
                var status = stat()
                #expect(fstat(file.descriptor, &status) == 0)
                #expect(Int(status.st_blocks) * 512 >= 10_000, "the blocks are there before they are written")
            #endif
            #expect(errno { try files.allocate(file, size: .max) } != nil)
        }
    }

    @Test("Files and directories are synced; a path that is not a directory is refused")
    func sync() throws {
        try withDirectory { directory in
            let file = try files.open(directory.path + "/f", .create)
            defer { files.close(file) }
            try files.write(ByteChunk([1]), to: file, at: 0)
            try files.sync(file)
            try files.syncDirectory(directory.path)
            #expect(errno { try files.syncDirectory(directory.path + "/f") } == ENOTDIR)
            #expect(errno { try files.syncDirectory(directory.path + "/g") } == ENOENT)
            #expect(errno { try files.sync(OpenFile(descriptor: -1)) } == EBADF)
        }
    }

    @Test("The boot identity is short and constant")
    func bootIdentity() {
        let identity = files.bootIdentity
        #expect(identity.count <= 64)
        #expect(identity == files.bootIdentity)
        #if os(Linux)
            #expect(identity.count == 36)
            #expect(UUID(uuidString: String(decoding: identity, as: UTF8.self)) != nil)
        #endif
    }
}
