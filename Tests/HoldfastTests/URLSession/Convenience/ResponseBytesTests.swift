// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Dispatch
import Foundation
import HoldfastStorage
import HoldfastTesting
import Testing

@testable import Holdfast

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("URLSession API: Pipeline.bytes(for:)", .timeLimit(.minutes(20)))
struct ResponseBytesTests {
    /// The bytes cut into chunks, of random sizes.
    static func cut(_ bytes: [UInt8], using generator: inout SeededGenerator) -> ResponseBytes {
        var chunks: [ByteChunk] = []
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = Int.random(in: 1...4, using: &generator)
            chunks.append(ByteChunk(copying: rest.prefix(count)))
            rest = rest.dropFirst(count)
        }
        return ResponseBytes(ResponseBody(ChunkSource(chunks)))
    }

    @Test("All bytes of all chunks come, slices and empty ones included; then the end, repeatedly")
    func bytes() async throws {
        let large = ByteChunk(patternedBytes(100_000))
        let chunks = [ByteChunk(), ByteChunk([1, 2, 3]), ByteChunk(), large[10..<70_000], ByteChunk()]
        let body = ResponseBytes(ResponseBody(ChunkSource(chunks)))
        var iterator = body.makeAsyncIterator()
        var all: [UInt8] = []
        while let byte = try await iterator.next() { all.append(byte) }
        #expect(all == [1, 2, 3] + large.array[10..<70_000])
        #expect(try await iterator.next() == nil)
        #expect(try await ResponseBytes(ResponseBody()).all().isEmpty)
    }

    @Test("Bytes in memory can be read any number of times")
    func again() async throws {
        let bytes = ResponseBytes(ResponseBody(ByteChunk([1, 2])))
        for _ in 0..<2 { #expect(try await bytes.all() == [1, 2]) }
    }

    @Test("What came before a failure is delivered, then the failure, then the end")
    func failure() async throws {
        let source = ChunkSource([ByteChunk([1, 2])], fails: true)
        var iterator = ResponseBytes(ResponseBody(source)).makeAsyncIterator()
        #expect(try await iterator.next() == 1)
        #expect(try await iterator.next() == 2)
        await #expect(throws: ChunkSource.Failure.self) { try await iterator.next() }
        #expect(try await iterator.next() == nil)
    }

    @Test("Bytes come as they are sent, after the head; dropping them ends the transfer", arguments: [true, false])
    func streaming(dropsIterator: Bool) async throws {
        let gate = LoopbackGate()
        let server = try LoopbackServer.start { _ in
            LoopbackReply(framing: .chunked, steps: [.send("ab"), .pause(gate)])
        }
        defer { server.stop() }
        let pipeline = Pipeline(transport: URLSessionTransport())
        func readOne() async throws {
            let (bytes, response) = try await pipeline.bytes(from: server.url())
            #expect((response as? HTTPURLResponse)?.statusCode == 200)
            guard dropsIterator else { return }
            for try await byte in bytes {
                #expect(byte == UInt8(ascii: "a"))
                break
            }
        }
        try await readOne()
        #expect(try await server.connectionEnds(atLeast: 1).map(\.endedBy) == [.peer])
    }

    @Test("A cancelled reader gets CancellationError at the next chunk")
    func cancelled() async throws {
        let chunks = [ByteChunk([1, 2]), ByteChunk([3])]
        let task = Task {
            var iterator = ResponseBytes(ResponseBody(ChunkSource(chunks))).makeAsyncIterator()
            _ = try await iterator.next()
            withUnsafeCurrentTask { $0?.cancel() }
            _ = try await iterator.next()
            return try await iterator.next()
        }
        await #expect(throws: CancellationError.self) { try await task.value }
    }

    @Test("Read on an actor, bytes do not leave it one by one")
    func onActor() async throws {
        let reader = CountingReader()
        let text = String(repeating: "a line\n", count: 1_000)
        let bytes = ResponseBytes(ResponseBody(ByteChunk(copying: text.utf8)))
        #expect(try await reader.count(bytes) == 7_000)
        #expect(try await reader.count(bytes.unicodeScalars) == 7_000)
        #expect(try await reader.count(bytes.characters) == 7_000)
        #expect(try await reader.count(bytes.lines) == 1_000)
        // A few for each chunk and each call, none for each byte.
        #expect(reader.executor.jobs.count < 100)
    }
}

/// An actor that counts how often something comes back to it.
private actor CountingReader {
    final class Executor: SerialExecutor {
        let jobs = CountWatch()
        private let queue = DispatchQueue(label: "holdfast.test.reader")

        func enqueue(_ job: consuming ExecutorJob) {
            jobs.increment()
            let job = UnownedJob(job)
            queue.async { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
        }
    }

    nonisolated let executor = Executor()
    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    func count(_ sequence: some AsyncSequence & Sendable) async throws -> Int {
        var count = 0
        for try await _ in sequence { count += 1 }
        return count
    }
}
