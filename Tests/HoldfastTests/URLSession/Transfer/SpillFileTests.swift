// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastStorage
import HoldfastTesting
import Testing

@testable import Holdfast

@Suite("SpillFile", .timeLimit(.minutes(20)))
struct SpillFileTests {
    private func read(_ file: SpillFile, _ count: Int, at offset: Int) async throws -> [UInt8] {
        try await withCheckedThrowingContinuation { continuation in
            file.read(count, at: offset) { continuation.resume(with: $0) }
        }.array
    }

    @Test("What was written is read, whichever segment it is in, and segments that were read are removed")
    func parts() async throws {
        let file = try SpillFile(partSize: 10)
        let bytes = patternedBytes(95)
        var written = 0
        for count in [7, 1, 30, 2, 25, 30] {
            try file.write(ByteChunk(Array(bytes[written..<(written + count)])), at: written)
            written += count
        }
        #expect(file.partCount == 10)
        var offset = 0
        for (count, parts) in [(3, 10), (7, 9), (35, 6), (50, 1)] {
            #expect(try await read(file, count, at: offset) == Array(bytes[offset..<(offset + count)]))
            offset += count
            #expect(file.partCount == parts)
        }
        // A file that was read to its end is used again from its beginning.
        try file.write(ByteChunk(Array(bytes[0..<15])), at: 0)
        #expect(try await read(file, 15, at: 0) == Array(bytes[0..<15]))
    }

    @Test("Reading what is not there is an error")
    func missing() async throws {
        let file = try SpillFile(partSize: 10)
        try file.write(ByteChunk([1, 2, 3]), at: 0)
        await #expect(throws: (any Error).self) { try await read(file, 4, at: 0) }
    }
}
