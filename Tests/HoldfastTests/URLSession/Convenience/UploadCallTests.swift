// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastStorage
import HoldfastTesting
import Testing

@testable import Holdfast

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("URLSession API: Pipeline.upload(for:from:) and (for:fromFile:)", .timeLimit(.minutes(20)))
struct UploadCallTests {
    private static func put(_ server: LoopbackServer) -> URLRequest { .to(server, "/", "PUT") }

    @Test("The content replaces the request's own")
    func content() async throws {
        var request = URLRequest.request("POST", "http://origin.example/a")
        request.httpBody = Data("own".utf8)
        let folder = try Folder()
        let file = try folder.file(Data("file".utf8))
        let transport = ScriptedTransport([.respond(201, body: "made")], repeatsLastStep: true)
        let pipeline = Pipeline(transport: transport)
        let (data, response) = try await pipeline.upload(for: request, from: Data("data".utf8))
        #expect(data == Data("made".utf8))
        #expect((response as? HTTPURLResponse)?.statusCode == 201)
        _ = try await pipeline.upload(for: request, fromFile: file)
        _ = try await pipeline.upload(for: request, from: Data())
        #expect(transport.sent.map { $0.body?.array } == [Array("data".utf8), Array("file".utf8), []])
        #expect(transport.sent.allSatisfy { $0.request.httpMethod == "POST" })
    }

    @Test("Each attempt sends a large file completely, over a real connection")
    func twice() async throws {
        let bytes = patternedBytes(3 << 20)
        let folder = try Folder()
        let file = try folder.file(Data(bytes))
        let server = try LoopbackServer.start { request in
            request.number == 0 ? LoopbackReply(503, fields: [("Retry-After", "0")]) : LoopbackReply(201)
        }
        defer { server.stop() }
        var rules = RetryRules(backoff: Backoff(base: .milliseconds(1), cap: .milliseconds(2)), maxAttempts: 3)
        rules.throttlingBackoff = rules.backoff
        let pipeline = Pipeline(transport: URLSessionTransport(), retrierFactory: .backoff(rules))
        let (_, response) = try await pipeline.upload(for: Self.put(server), fromFile: file)
        #expect((response as? HTTPURLResponse)?.statusCode == 201)
        #expect(server.requests.map { $0.body == bytes } == [true, true])
    }

    @Test("A file behind a symbolic link is sent")
    func link() async throws {
        let folder = try Folder()
        let link = folder.url.appendingPathComponent("link")
        try FileManager.default.createSymbolicLink(at: link, withDestinationURL: try folder.file(SessionCall.content))
        let server = try LoopbackServer.start { LoopbackReply(bytes: $0.body) }
        defer { server.stop() }
        let pipeline = Pipeline(transport: URLSessionTransport())
        #expect(try await pipeline.upload(for: Self.put(server), fromFile: link).0 == SessionCall.content)
    }

    @Test("A missing file, a directory or a URL that is not a file: .badRequest, nothing sent", arguments: 0..<3)
    func unreadable(_ index: Int) async throws {
        let folder = try Folder()
        let web = try #require(URL(string: "http://origin.example/file"))
        let file = [folder.url.appendingPathComponent("gone"), folder.url, web][index]
        let transport = ScriptedTransport([])
        let error = await #expect(throws: ServiceError.self) {
            try await Pipeline(transport: transport).upload(for: .request("PUT", "http://h.example/"), fromFile: file)
        }
        #expect(error?.code == .badRequest)
        #expect(error?.progress == .notSent)
        #expect(error?.cause != nil)
        #expect(transport.sent.isEmpty)
    }
}
