// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastStorage
import HoldfastTesting
import Synchronization
import Testing

@testable import Holdfast

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("URLSession APIs: cache, retries, cancellation, failures", .timeLimit(.minutes(20)))
struct SessionCallTests {
    @Test("With the cache the second call sends nothing", arguments: [SessionCall.data, .download, .bytes])
    func stored(_ call: SessionCall) async throws {
        let server = try LoopbackServer.start { _ in
            LoopbackReply(fields: [("Cache-Control", "max-age=600")], body: "kept")
        }
        defer { server.stop() }
        let cache = HTTPCache.inMemory()
        let pipeline = Pipeline(transport: URLSessionTransport(), cache: cache)
        let folder = try Folder()
        for _ in 0..<2 {
            #expect(try await call.load(.to(server), pipeline, folder).0 == Data("kept".utf8))
            await pipeline.drain()
        }
        #expect(server.requests.count == 1)
        #expect(cache.statistics.hits == 1)
    }

    @Test("A 503 is retried, and the content is sent completely again", arguments: SessionCall.allCases)
    func retried(_ call: SessionCall) async throws {
        let server = try LoopbackServer.start { request in
            request.number == 0
                ? LoopbackReply(503, fields: [("Retry-After", "0")], body: "busy") : LoopbackReply(bytes: request.body)
        }
        defer { server.stop() }
        var rules = RetryRules(backoff: Backoff(base: .milliseconds(1), cap: .milliseconds(2)), maxAttempts: 3)
        rules.throttlingBackoff = rules.backoff
        let pipeline = Pipeline(transport: URLSessionTransport(), retrierFactory: .backoff(rules))
        let sent = call.method == "PUT" ? SessionCall.content : Data()
        let (data, response) = try await call.load(.to(server, "/", call.method), pipeline, Folder())
        #expect(data == sent)
        #expect(response.statusCode == 200)
        #expect(server.requests.map { Data($0.body) } == [sent, sent])
    }

    @Test("Options reach the call", arguments: [SessionCall.data, .upload, .uploadFile, .download, .bytes])
    func options(_ call: SessionCall) async throws {
        let transport = ScriptedTransport([.respond(500)], repeatsLastStep: true)
        let pipeline = Pipeline(transport: transport)
        let url = try #require(URL(string: "http://origin.example/a"))
        let request = URLRequest(url: url)
        var options = CallOptions()
        options.acceptance = .successful
        let refusing = options
        let error = await #expect(throws: ServiceError.self) {
            switch call {
            case .data: _ = try await pipeline.data(from: url, options: refusing)
            case .upload: _ = try await pipeline.upload(for: request, from: Data(), options: refusing)
            case .uploadFile:
                let folder = try Folder()
                let file = try folder.file(Data())
                _ = try await pipeline.upload(for: request, fromFile: file, options: refusing)
            case .download: _ = try await pipeline.download(from: url, options: refusing)
            case .bytes: _ = try await pipeline.bytes(from: url, options: refusing)
            }
        }
        #expect(error?.code == .unacceptableStatus)
    }

    @Test("Cancelled before the head: CancellationError, the connection ends, no file", arguments: SessionCall.allCases)
    func cancelledBeforeHead(_ call: SessionCall) async throws {
        let server = try LoopbackServer.start { _ in .never }
        defer { server.stop() }
        let folder = try Folder()
        let pipeline = Pipeline(transport: URLSessionTransport())
        let task = Task { try await call.load(.to(server, "/", call.method), pipeline, folder).0 }
        try await server.requests(atLeast: 1)
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(try await server.connectionEnds(atLeast: 1).map(\.endedBy) == [.peer])
        #expect(try folder.downloads.isEmpty)
    }

    @Test("Cancelled within the body: CancellationError, the connection ends, no file", arguments: SessionCall.allCases)
    func cancelledInBody(_ call: SessionCall) async throws {
        let gate = LoopbackGate()
        let server = try LoopbackServer.start { _ in
            LoopbackReply(framing: .chunked, steps: [.send("begun"), .pause(gate)])
        }
        defer { server.stop() }
        let folder = try Folder()
        let pipeline = Pipeline(transport: URLSessionTransport())
        let task = Task { try await call.load(.to(server, "/", call.method), pipeline, folder).0 }
        try await gate.reached()
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(try await server.connectionEnds(atLeast: 1).map(\.endedBy) == [.peer])
        #expect(try folder.downloads.isEmpty)
    }

    @Test("A body that breaks off gives an error and no file", arguments: SessionCall.allCases)
    func broken(_ call: SessionCall) async throws {
        let server = try LoopbackServer.start { _ in
            LoopbackReply(framing: .length(10), steps: [.send("begun"), .close])
        }
        defer { server.stop() }
        let folder = try Folder()
        let pipeline = Pipeline(transport: URLSessionTransport())
        let error = await #expect(throws: ServiceError.self) {
            try await call.load(.to(server, "/", call.method), pipeline, folder)
        }
        #expect(error?.code == .connectionLost)
        #expect(error?.urlError.code == .networkConnectionLost)
        #expect(try folder.downloads.isEmpty)
    }

    @Test(
        "A cancellation reported by Foundation is still a CancellationError",
        arguments: [SessionCall.data, .bytes]
    )
    func foundationsCancellation(_ call: SessionCall) async throws {
        let transport = ScriptedTransport([.stream(chunks: ["a"], failure: URLError(.cancelled))])
        await #expect(throws: CancellationError.self) {
            try await call.load(.get(), Pipeline(transport: transport), Folder())
        }
    }
}
