// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastStorage
import HoldfastTesting
import Testing

@testable import Holdfast

@Suite("The body buffer and its files", .timeLimit(.minutes(20)))
struct BodyBufferTests {
    private func chunk(_ count: Int) -> ByteChunk { ByteChunk(Array(repeating: 7, count: count)) }

    @Test("Memory first; once something was spilled, everything is, until the reader has caught up")
    func order() {
        var buffer = BodyBuffer(memoryLimit: 10, diskLimit: 100)
        #expect(buffer.place(chunk(6)) == .memory)
        #expect(buffer.place(chunk(5)) == .spill(offset: 0))
        #expect(buffer.place(chunk(1)) == .spill(offset: 5))
        #expect(buffer.next() == .chunk(chunk(6)))
        #expect(buffer.next() == .empty)
        buffer.spilled(5)
        #expect(buffer.next() == .spilled(offset: 0, count: 5))
        buffer.readBack(5)
        #expect(buffer.place(chunk(1)) == .spill(offset: 6))
        buffer.spilled(1)
        buffer.spilled(1)
        #expect(buffer.next() == .spilled(offset: 5, count: 2))
        buffer.readBack(2)
        #expect(buffer.place(chunk(1)) == .memory)
    }

    @Test("Limits are exact, and the file is reused from its start")
    func limits() {
        var buffer = BodyBuffer(memoryLimit: 4, diskLimit: 8)
        #expect(buffer.place(chunk(4)) == .memory)
        #expect(buffer.place(chunk(8)) == .spill(offset: 0))
        #expect(buffer.place(chunk(1)) == .refused)
        buffer.spilled(8)
        #expect(buffer.next() == .chunk(chunk(4)))
        #expect(buffer.next() == .spilled(offset: 0, count: 8))
        buffer.readBack(8)
        #expect(buffer.place(chunk(8)) == .spill(offset: 0))
        // What has been read does not wait any more, although the reader has not caught up.
        buffer.spilled(8)
        buffer.readBack(5)
        #expect(buffer.place(chunk(6)) == .refused)
        #expect(buffer.place(chunk(5)) == .spill(offset: 8))
        var none = BodyBuffer(memoryLimit: 0, diskLimit: 0)
        #expect(none.place(chunk(1)) == .refused)
    }

    @Test("Whatever the order of arrivals, writes and reads, bytes come out in order", arguments: 1...50)
    func property(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var buffer = BodyBuffer(
            memoryLimit: Int.random(in: 0...64, using: &generator),
            diskLimit: 1 << 20
        )
        var (input, output, file): ([UInt8], [UInt8], [UInt8]) = ([], [], [])
        var unreported: [Int] = []
        for _ in 0..<2_000 {
            switch Int.random(in: 0..<4, using: &generator) {
            case 0, 1:
                let bytes = (0..<Int.random(in: 1...32, using: &generator)).map { _ in
                    UInt8.random(in: 0...255, using: &generator)
                }
                input += bytes
                switch buffer.place(ByteChunk(bytes)) {
                case .memory: break
                case .spill(let offset):
                    file.removeSubrange(min(offset, file.count)...)
                    file += bytes
                    unreported.append(bytes.count)
                case .refused: Issue.record("refused within the limit, seed \(seed)")
                }
            case 2:
                if !unreported.isEmpty { buffer.spilled(unreported.removeFirst()) }
            default:
                read(&buffer, file, &output)
            }
        }
        for count in unreported { buffer.spilled(count) }
        while read(&buffer, file, &output) {}
        #expect(output == input, "seed \(seed)")
    }

    @discardableResult
    private func read(_ buffer: inout BodyBuffer, _ file: [UInt8], _ output: inout [UInt8]) -> Bool {
        switch buffer.next() {
        case .chunk(let chunk):
            output += chunk.array
        case .spilled(let offset, let count):
            output += file[offset..<(offset + count)]
            buffer.readBack(count)
        case .empty:
            return false
        }
        return true
    }

    @Test("A spill file returns what was written, also over older bytes")
    func spillFile() async throws {
        let file = try SpillFile()
        try file.write(ByteChunk([1, 2, 3, 4]), at: 0)
        #expect(try await read(file, 3, at: 1).array == [2, 3, 4])
        try file.write(ByteChunk([9]), at: 0)
        #expect(try await read(file, 2, at: 0).array == [9, 2])
        await #expect(throws: CocoaError.self) { try await self.read(file, 5, at: 0) }
    }

    private func read(_ file: SpillFile, _ count: Int, at offset: Int) async throws -> ByteChunk {
        try await withCheckedThrowingContinuation { continuation in
            file.read(count, at: offset) { continuation.resume(with: $0) }
        }
    }

    @Test("A temporary file is removed on request")
    func removedFile() async throws {
        let file = try await TemporaryFile.containing([ByteChunk([1])])
        await file.remove()
        #expect(!FileManager.default.fileExists(atPath: file.url.path))
        await file.remove()
    }

    @Test("A temporary file is removed with its last reference", .timeLimit(.minutes(20)))
    func temporaryFile() async throws {
        var file: TemporaryFile? = try await TemporaryFile.containing([ByteChunk([1]), ByteChunk([2, 3])])
        let url = try #require(file?.url)
        #expect(try Data(contentsOf: url) == Data([1, 2, 3]))
        file = nil
        // The queue that wrote may hold one reference a moment longer.
        await until { !FileManager.default.fileExists(atPath: url.path) }
    }

    @Test(
        "Content codings, RFC 9110 §8.4",
        arguments: [
            ([], false), ([""], false), (["identity"], false), (["gzip"], true), (["GZip"], true), (["x-gzip"], true),
            (["deflate, gzip"], true), (["br", "gzip"], true), (["identity, gzip"], true), (["aws-chunked"], false),
            (["gzip, aws-chunked"], false),
        ] as [([String], Bool)]
    )
    func contentCodings(values: [String], areUndone: Bool) {
        #expect(ContentCodings.areUndone(values) == areUndone)
    }
}
