// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastTesting
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The code of docs/clients/urlsession.md, block by block.
@Suite("Page: URLSession", .timeLimit(.minutes(20)))
struct URLSessionPageTests {
    private struct Refused: Error {}

    private struct Service {
        let client: Pipeline

        func load(_ request: URLRequest) async throws -> Data {
            do {
                return try await client.data(for: request).0
            } catch let error as ServiceError {
                throw error.urlError
            } catch is CancellationError {
                throw URLError(.cancelled)
            }
        }
    }

    private let request = URLRequest.get("http://origin.example/articles")

    @Test("Change the receiver", arguments: [200, 404])
    func receiver(_ status: Int) async throws {
        let client = Pipeline(transport: ScriptedTransport([.respond(status, body: "[]")]))
        func load() async throws -> Data {
            let (data, response) = try await client.data(for: request)
            guard let http = response as? HTTPURLResponse, http.statusCode == 200 else { throw Refused() }
            return data
        }
        if status == 200 {
            #expect(try await load() == Data("[]".utf8))
        } else {
            await #expect(throws: Refused.self) { try await load() }
        }
    }

    @Test("Upload, download, bytes")
    func calls() async throws {
        let folder = try Folder()
        let photo = try folder.file(Data("photo".utf8))
        let destination = folder.url.appendingPathComponent("archive")
        let archive = try #require(URL(string: "http://origin.example/archive"))
        let feed = try #require(URL(string: "http://origin.example/feed"))
        let put = URLRequest.request("PUT", "http://origin.example/photo")
        let transport = ScriptedTransport([
            .respond(201, body: "receipt"), .stream(chunks: ["arc", "hive"]), .stream(chunks: ["on", "e\n\ntw", "o"]),
        ])
        let client = Pipeline(transport: transport)
        var lines: [String] = []
        let (receipt, _) = try await client.upload(for: put, fromFile: photo)
        let (file, _) = try await client.download(from: archive)
        try FileManager.default.moveItem(at: file, to: destination)
        let (bytes, _) = try await client.bytes(from: feed)
        for try await line in bytes.lines { lines.append(line) }
        #expect(receipt == Data("receipt".utf8))
        #expect(try Data(contentsOf: destination) == Data("archive".utf8))
        #expect(lines == ["one", "two"])
        #expect(transport.sent.first?.body?.array == Array("photo".utf8))
    }

    @Test("Options")
    func options() async throws {
        let step = ScriptedTransport.Step.respond(200, ["Cache-Control": "max-age=60"], body: "[]")
        let transport = ScriptedTransport([step], repeatsLastStep: true)
        let client = Pipeline(transport: transport, cache: .inMemory())
        _ = try await client.data(for: request)
        await client.drain()
        var options = CallOptions()
        options.timeout = .seconds(5)
        options.cache = .reload
        let (fresh, _) = try await client.data(for: request, options: options)
        #expect(fresh == Data("[]".utf8))
        #expect(transport.sent.count == 2)
    }

    @Test("Cookies that change, and calls that name their user")
    func principal() async throws {
        struct User { let id: String }
        let user = User(id: "user-17")
        let step = ScriptedTransport.Step.respond(200, ["Cache-Control": "max-age=60"], body: "[]")
        let transport = ScriptedTransport([step], repeatsLastStep: true)
        let cache = HTTPCache.inMemory()
        let client = Pipeline(transport: transport, cache: cache)
        func load(_ request: URLRequest) async throws -> Data {
            var options = CallOptions()
            options.principal = user.id
            let (page, _) = try await client.data(for: request, options: options)
            return page
        }
        for visit in 1...3 {
            let request = URLRequest.get("http://origin.example/articles", ["Cookie": "sid=7; visit=\(visit)"])
            #expect(try await load(request) == Data("[]".utf8))
        }
        #expect(transport.sent.count == 1)
        try await cache.remove(.principal(user.id))
        _ = try await load(request)
        #expect(transport.sent.count == 2)
    }

    @Test("Errors by the code of URLSession", arguments: [ServiceError.Code.timeout, .connect])
    func errors(_ code: ServiceError.Code) async throws {
        let client = Pipeline(transport: ScriptedTransport([.fail(code, progress: .headSent)]))
        let lastArticles = Data("old".utf8)
        var articles = Data()
        func update() async throws {
            do {
                articles = try await client.data(for: request).0
            } catch let error as ServiceError where error.urlError.code == .timedOut {
                articles = lastArticles
            }
        }
        if code == .timeout {
            try await update()
            #expect(articles == lastArticles)
        } else {
            await #expect(throws: ServiceError.self) { try await update() }
        }
    }

    @Test("Errors as URLSession throws them")
    func urlErrors() async throws {
        let transport = ScriptedTransport([.respond(body: "x"), .fail(.tls, progress: .notSent), .silence])
        let service = Service(client: Pipeline(transport: transport))
        let request = request
        #expect(try await service.load(request) == Data("x".utf8))
        let failure = await #expect(throws: URLError.self) { try await service.load(request) }
        #expect(failure?.code == .secureConnectionFailed)
        let task = Task { try await service.load(request) }
        try await transport.waitForSends(3)
        task.cancel()
        let cancellation = await #expect(throws: URLError.self) { try await task.value }
        #expect(cancellation?.code == .cancelled)
    }
}
