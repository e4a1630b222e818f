// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastSemantics
import HoldfastStorage
import HoldfastTesting
import Testing

@testable import Holdfast

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("A one-shot body kept up to a limit", .timeLimit(.minutes(20)))
struct ReplayableBodyTests {
    private let chunks = ["ab", "cd", "ef", "gh"].map { ByteChunk($0) }

    @Test("Read twice it gives the same bytes, and the source is read once")
    func replays() async throws {
        let source = ListSource(chunks)
        let body = ReplayableBody(source, limit: 8)
        #expect(try await body.makeReader().readAll() == Array("abcdefgh".utf8))
        #expect(body.isWhole)
        #expect(try await body.makeReader().readAll() == Array("abcdefgh".utf8))
        #expect(source.reads.count == 5)
        #expect(body.keptBytes == 8)
    }

    @Test("A second attempt replays what was kept and continues with the source")
    func goesOn() async throws {
        let source = ListSource(chunks)
        let body = ReplayableBody(source, limit: 100)
        let first = body.makeReader()
        #expect(try await first.next() == ByteChunk("ab"))
        #expect(try await first.next() == ByteChunk("cd"))
        first.cancel()
        #expect(try await body.makeReader().readAll() == Array("abcdefgh".utf8))
        #expect(!source.isCancelled)
        await #expect(throws: CancellationError.self) { try await first.next() }
    }

    @Test("Beyond the limit the kept bytes are dropped, the reading attempt continues, and no other can begin")
    func commits() async throws {
        let body = ReplayableBody(ListSource(chunks), limit: 5)
        let first = body.makeReader()
        for expected in ["ab", "cd"] { #expect(try await first.next() == ByteChunk(expected)) }
        #expect(body.isWhole)
        #expect(body.keptBytes == 4)
        #expect(try await first.next() == ByteChunk("ef"))
        #expect(!body.isWhole)
        #expect(body.keptBytes == 0)
        #expect(try await first.next() == ByteChunk("gh"))
        #expect(body.keptBytes == 0)
        #expect(try await first.next() == nil)
        await #expect(throws: ServiceError.self) { try await body.makeReader().next() }
    }

    @Test(
        "An attempt abandoned while it waits for the source loses no chunk, and the source has one reader at a time"
    )
    func abandonedWait() async throws {
        let gate = CountWatch()
        let source = ListSource(chunks, gate: gate)
        let body = ReplayableBody(source, limit: 100)
        let abandoned = Task { [reader = body.makeReader()] in try await reader.next() }
        try await source.reads.wait(for: 1)
        abandoned.cancel()
        await #expect(throws: CancellationError.self) { try await abandoned.value }
        let second = Task { [reader = body.makeReader()] in try await reader.readAll() }
        for _ in 1...5 { gate.increment() }
        #expect(try await second.value == Array("abcdefgh".utf8))
        #expect(source.overlaps == 0)
        #expect(source.reads.count == 5)
    }

    @Test("Of two tasks that read for one attempt the second gets an error, and the first gets the chunk")
    func twoTasks() async throws {
        let gate = CountWatch()
        let body = ReplayableBody(ListSource([ByteChunk("ab")], gate: gate), limit: 4)
        let reader = body.makeReader()
        await withTaskGroup(of: ByteChunk?.self) { group in
            for _ in 0..<2 { group.addTask { (try? await reader.next()) ?? nil } }
            let refused = await group.next()
            #expect(refused == .some(nil))
            gate.increment()
            let delivered = await group.next()
            #expect(delivered == ByteChunk("ab"))
        }
    }

    @Test("A chunk beyond the limit that comes after its attempt is gone waits for the next attempt")
    func lateChunk() async throws {
        let gate = CountWatch()
        let source = ListSource([ByteChunk("ab"), ByteChunk("cdefgh")], gate: gate)
        let body = ReplayableBody(source, limit: 4)
        let first = body.makeReader()
        gate.increment()
        #expect(try await first.next() == ByteChunk("ab"))
        let waiting = Task { try await first.next() }
        try await source.reads.wait(for: 2)
        waiting.cancel()
        await #expect(throws: CancellationError.self) { try await waiting.value }
        gate.increment()
        await until { body.keptBytes == 8 }
        #expect(body.isWhole)
        let second = body.makeReader()
        for expected in ["ab", "cdefgh"] { #expect(try await second.next() == ByteChunk(expected)) }
        #expect(!body.isWhole)
        #expect(body.keptBytes == 0)
    }

    @Test(
        "Two attempts at once read the same; beyond the limit one continues, and the other fails without a cancellation"
    )
    func concurrent() async throws {
        let body = ReplayableBody(ListSource(chunks), limit: 5)
        let first = body.makeReader()
        let second = body.makeReader()
        for expected in ["ab", "cd"] {
            #expect(try await first.next() == ByteChunk(expected))
            #expect(try await second.next() == ByteChunk(expected))
        }
        #expect(try await second.next() == ByteChunk("ef"))
        await #expect(throws: ServiceError.self) { try await first.next() }
        #expect(try await second.readAll() == Array("gh".utf8))
    }

    @Test("Once released it keeps nothing more, and the current reader continues")
    func released() async throws {
        let body = ReplayableBody(ListSource(chunks), limit: 100)
        let reader = body.makeReader()
        #expect(try await reader.next() == ByteChunk("ab"))
        body.release()
        #expect(body.keptBytes == 0)
        #expect(try await reader.next() == ByteChunk("cd"))
        #expect(body.keptBytes == 0)
        #expect(try await reader.readAll() == Array("efgh".utf8))
    }

    @Test(
        "The source is told to end when nobody can read it any more",
        arguments: ["released", "closed after", "dropped"]
    )
    func endsSource(_ way: String) async throws {
        let source = ListSource(chunks)
        do {
            let body = ReplayableBody(source, limit: 100)
            var reader: (any ByteSource)? = body.makeReader()
            _ = try await reader?.next()
            switch way {
            case "released":
                reader = nil
                #expect(!source.isCancelled)
                body.release()
                #expect(source.isCancelled)
            case "closed after":
                body.release()
                #expect(!source.isCancelled)
                reader?.cancel()
                #expect(source.isCancelled)
            default: break
            }
        }
        #expect(source.isCancelled)
    }

    @Test("A failure of the source fails its reader, and the source is not tried again")
    func failing() async throws {
        let body = ReplayableBody(ListSource([ByteChunk("ab")], fails: true), limit: 100)
        let reader = body.makeReader()
        #expect(try await reader.next() == ByteChunk("ab"))
        await #expect(throws: ListSource.Failure.self) { try await reader.next() }
        #expect(!body.isWhole)
    }

    @Test("Only a body that can be read once and is unread is kept")
    func teed() async throws {
        for body in [RequestBody.none, .bytes(ByteChunk()), RequestBody(.requestStream), .factory { ListSource([]) }] {
            if case .oneShot = body.teed(limit: 10).form { Issue.record("a one-shot form") }
            #expect(body.teed(limit: 10).isWhole == body.isWhole)
        }
        let oneShot = RequestBody.oneShot(length: 2, ListSource([ByteChunk("ab")]))
        guard case .factory(2, let make) = oneShot.teed(limit: 2).form else {
            Issue.record("nothing is kept")
            return
        }
        #expect(try await make().readAll() == Array("ab".utf8))
        #expect(!oneShot.isWhole)
        guard case .oneShot = oneShot.teed(limit: 2).form else {
            Issue.record("what was touched is not kept")
            return
        }
    }

    private static func upload(_ url: String = "http://origin.example/a") -> URLRequest {
        var request = URLRequest.request("PUT", url)
        request.httpBodyStream = InputStream(data: Data("content".utf8))
        return request
    }

    @Test("A request's own stream is resent only if nobody has opened it")
    func requestStream() async throws {
        var configuration = PipelineConfiguration()
        configuration.clock = ManualClock(autoAdvances: true)
        let unread = ScriptedTransport([.fail(.connect, progress: .notSent), .respond(200)])
        let first = Pipeline(transport: unread, retrierFactory: .default, configuration: configuration)
        #expect(try await first.send(Self.upload()).status == .ok)
        #expect(unread.sent.count == 2)
        let read = ScriptedTransport { request in
            request.httpBodyStream?.open()
            return .fail(.connect, progress: .notSent)
        }
        let second = Pipeline(transport: read, retrierFactory: .default, configuration: configuration)
        await #expect(throws: ServiceError.self) { try await second.send(Self.upload()) }
        #expect(read.sent.count == 1)
    }

    @Test("A refused connection leaves a request's own stream unread, through URLSession too")
    func refusedStream() async throws {
        var configuration = PipelineConfiguration()
        configuration.clock = ManualClock(autoAdvances: true)
        let pipeline = Pipeline(
            transport: URLSessionTransport(),
            retrierFactory: .default,
            configuration: configuration
        )
        let request = Self.upload("http://127.0.0.1:1/a")
        let error = await #expect(throws: ServiceError.self) { try await pipeline.send(request) }
        #expect(error?.attempts.count == 4)
        let stream = try #require(request.httpBodyStream)
        stream.open()
        var bytes = [UInt8](repeating: 0, count: 16)
        #expect(stream.read(&bytes, maxLength: 16) == 7)
    }
}
