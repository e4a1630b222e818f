// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastTesting
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("URLSession API: Pipeline.data(for:)", .timeLimit(.minutes(20)))
struct DataCallTests {
    @Test("Data and an HTTPURLResponse come back for any status, fields included", arguments: [200, 404, 503])
    func dataFor(_ status: Int) async throws {
        let fields: HeaderFields = ["Content-Type": "text/plain", "X-Twice": "a", "x-twice": "b"]
        let transport = ScriptedTransport([.stream(status, fields, chunks: ["he", "ll", "o"])])
        let (data, response) = try await Pipeline(transport: transport).data(for: .get())
        let answer = try #require(response as? HTTPURLResponse)
        #expect(data == Data("hello".utf8))
        #expect(answer.statusCode == status)
        #expect(answer.url == URLRequest.get().url)
        #expect(answer.value(forHTTPHeaderField: "Content-Type") == "text/plain")
        #expect(answer.value(forHTTPHeaderField: "X-Twice") == "a, b")
    }

    @Test("Content that ends before its length, or that a hook has read already, is not taken for all of it")
    func incomplete() async throws {
        let reading: [any ServiceHook] = [
            .closures(onSuccess: { response, _, _ in _ = try await response.body.collect() })
        ]
        let cases: [([String], [any ServiceHook])] = [(["he"], []), (["he", "llo"], reading)]
        for (chunks, hooks) in cases {
            let transport = ScriptedTransport([.stream(200, chunks: chunks, length: 5)])
            let pipeline = Pipeline(transport: transport, hooks: hooks)
            let error = await #expect(throws: ServiceError.self) { try await pipeline.data(for: .get()) }
            #expect(error?.code == .connectionLost)
            #expect(error?.message.contains("after \(hooks.isEmpty ? 2 : 0) of 5 bytes") == true)
        }
    }

    @Test("A request's own body is sent")
    func ownBody() async throws {
        var request = URLRequest.request("POST", "http://h.example/")
        request.httpBody = Data("content".utf8)
        let transport = ScriptedTransport([.respond(204)])
        _ = try await Pipeline(transport: transport).data(for: request)
        #expect(transport.sent.first?.body == ByteChunk(copying: "content".utf8))
    }

    @Test(
        "collect(upTo:) accepts a body of the limit and refuses a longer one",
        arguments: [(5, true), (4, false), (0, false)]
    )
    func limit(_ limit: Int, fits: Bool) async throws {
        for step in [
            ScriptedTransport.Step.respond(body: "hello"), .stream(chunks: ["he", "llo"]),
            .stream(chunks: ["hello"], length: 5),
        ] {
            let response = try await Pipeline(transport: ScriptedTransport([step])).send(.get())
            do {
                #expect(try await response.body.collect(upTo: limit) == ByteChunk(copying: "hello".utf8))
                #expect(fits)
            } catch let error as ServiceError {
                #expect(error.code == .bodyTooLarge)
                #expect(error.message.contains("\(limit)"))
                #expect(!fits)
            }
        }
    }

    @Test("A body of bytes can be read again; chunks come as an AsyncSequence")
    func iteration() async throws {
        let body = ResponseBody(ByteChunk([1, 2, 3]))
        for _ in 0..<2 {
            var all: [UInt8] = []
            for try await chunk in body { all += chunk }
            #expect(all == [1, 2, 3])
        }
        #expect(body.length == 3)
    }

    @Test("A redirect status without Location is a success too, even where Foundation passes on no content")
    func withoutLocation() async throws {
        let server = try LoopbackServer.start { _ in LoopbackReply(302, body: "where") }
        let pipeline = Pipeline(transport: URLSessionTransport())
        let (data, response) = try await pipeline.data(from: server.url())
        #expect((response as? HTTPURLResponse)?.statusCode == 302)
        #expect(data.isEmpty || data == Data("where".utf8))
        let (file, _) = try await pipeline.download(from: server.url())
        try FileManager.default.removeItem(at: file)
    }
}
