// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastServices
import HoldfastTesting
import Synchronization
import Testing

@Suite("Bodies that are written while they are read", .timeLimit(.minutes(20)))
struct WrittenBodyTests {
    private struct Broken: Error {}

    @Test("What is written is read in order, and the body ends with its writer")
    func inOrder() async throws {
        let body = ResponseBody { writer in
            try await writer.write("one ")
            try await writer.write(Data())
            try await writer.write(Data("two "))
            try await writer.write(ByteChunk(copying: "three".utf8))
        }
        #expect(try await body.collect() == ByteChunk(copying: "one two three".utf8))
        #expect(try await body.collect().isEmpty)
    }

    @Test("A writer is at most one chunk ahead of its reader")
    func pace() async throws {
        let written = CountWatch()
        let body = ResponseBody(length: 100) { writer in
            for _ in 0..<100 {
                try await writer.write("x")
                written.increment()
            }
        }
        #expect(body.length == 100)
        #expect(written.count == 0)
        var read = 0
        for try await chunk in body {
            read += chunk.count
            // One that was read, one that lies there, and one whose writer was let go on by this very read.
            #expect(written.count <= read + 2)
        }
        #expect(read == 100)
    }

    @Test("After what was written, the body fails with the writer's error")
    func failure() async throws {
        let body = ResponseBody { writer in
            try await writer.write("half")
            throw Broken()
        }
        var iterator = body.makeAsyncIterator()
        #expect(try await iterator.next()?.count == 4)
        await #expect(throws: Broken.self) { try await iterator.next() }
        await #expect(throws: Broken.self) { try await iterator.next() }
    }

    @Test("Dropping a body cancels its writer")
    func dropped() async throws {
        let cancelled = CountWatch()
        do {
            let body = ResponseBody { writer in
                do {
                    while true { try await writer.write("x") }
                } catch {
                    if error is CancellationError { cancelled.increment() }
                    throw error
                }
            }
            var iterator = body.makeAsyncIterator()
            #expect(try await iterator.next()?.count == 1)
        }
        try await cancelled.wait(for: 1)
    }

    @Test("Cancelling the reader of a silent writer ends both")
    func cancelledReader() async throws {
        let begun = CountWatch()
        let body = ResponseBody { writer in
            begun.increment()
            try await CountWatch().wait(for: 1)
        }
        let reading = Task { try await body.collect() }
        try await begun.wait(for: 1)
        reading.cancel()
        await #expect(throws: CancellationError.self) { try await reading.value }
    }

    @Test("A body that is cancelled before it is read never starts its writer")
    func neverBegun() async throws {
        let begun = CountWatch()
        let body = ResponseBody { _ in begun.increment() }
        body.discard()
        await #expect(throws: CancellationError.self) { try await body.collect() }
        #expect(begun.count == 0)
    }
}
