// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastTesting
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The code of `HoldfastTesting.docc`: articles, and the steps from first to last.
@Suite("Catalog: HoldfastTesting", .timeLimit(.minutes(20)))
struct HoldfastTestingCatalogTests {
    private func request() throws -> URLRequest {
        URLRequest(url: try #require(URL(string: "http://origin.example/a")))
    }

    @Test("Scripted responses and a clock")
    func script() async throws {
        let request = try request()
        let transport = ScriptedTransport([
            .respond(503),
            .fail(.connectionLost, progress: .headSent),
            .respond(200, ["Cache-Control": "max-age=60"], body: "hello"),
        ])
        let clock = ManualClock(autoAdvances: true)
        var configuration = PipelineConfiguration()
        configuration.clock = clock
        let client = Pipeline(
            transport: transport,
            cache: .inMemory(),
            retrierFactory: .default,
            configuration: configuration
        )
        let response = try await client.send(request)
        print(response.attempts.count, transport.sent.count)
        #expect(response.attempts.count == 3)
        #expect(try await response.body.data() == Data("hello".utf8))
        await client.drain()
        #expect(try await client.send(request).source == .fresh)
        clock.advance(by: .seconds(61))
        await #expect(throws: (any Error).self) { try await client.send(request) }
    }

    @Test("A record")
    func record() async throws {
        var configuration = PipelineConfiguration()
        configuration.clock = ManualClock(autoAdvances: true)
        let recorder = EventRecorder()
        configuration.observers.append(recorder)
        let transport = ScriptedTransport([.respond(503), .respond()])
        let client = Pipeline(transport: transport, retrierFactory: .default, configuration: configuration)
        _ = try await client.send(try request())
        print(recorder.events(.retryScheduled).compactMap(\.delay))
        #expect(recorder.events(.retryScheduled).count == 1)
    }

    @Test("A server")
    func server() async throws {
        let server = try LoopbackServer.start { request in
            request.path == "/" ? LoopbackReply(body: "hello") : LoopbackReply(404, body: "not here")
        }
        let client = Pipeline(transport: URLSessionTransport())
        let (data, _) = try await client.data(from: server.url())
        #expect(data == Data("hello".utf8))
    }

    @Test("A custom store")
    func store() async {
        let factory = StoreFactory("my store") { capacity in
            StoreSubject(MemoryStore(capacity: capacity))
        }
        let findings = await StoreConformance.findings(of: factory)
        #expect(findings.isEmpty)
    }

    @Test("A custom transport")
    func transport() async {
        let subject = TransportSubject("URLSession", capabilities: .urlSession) { URLSessionTransport() }
        if let check = TransportConformance.checks.first {
            print(check, await check.findings(of: subject, at: .http1))
        }
        #expect(!TransportConformance.checks.isEmpty)
    }

    struct First {
        @Test("A greeting comes through two failures")
        func greeting() async throws {
            let transport = ScriptedTransport([.respond(503), .respond(503), .respond(200, body: "hello")])
            let client = Pipeline(transport: transport, retrierFactory: .default)

            let url = try #require(URL(string: "https://example.com/greeting"))
            let (data, _) = try await client.data(from: url)

            #expect(data == Data("hello".utf8))
            #expect(transport.sent.count == 3)
        }
    }

    struct Second {
        @Test("A greeting comes through two failures")
        func greeting() async throws {
            let transport = ScriptedTransport([.respond(503), .respond(503), .respond(200, body: "hello")])
            var configuration = PipelineConfiguration()
            configuration.clock = ManualClock(autoAdvances: true)
            let client = Pipeline(transport: transport, retrierFactory: .default, configuration: configuration)

            let url = try #require(URL(string: "https://example.com/greeting"))
            let (data, _) = try await client.data(from: url)

            #expect(data == Data("hello".utf8))
            #expect(transport.sent.count == 3)
        }
    }

    struct Third {
        @Test("A greeting comes through two failures")
        func greeting() async throws {
            let transport = ScriptedTransport([.respond(503), .respond(503), .respond(200, body: "hello")])
            var configuration = PipelineConfiguration()
            configuration.clock = ManualClock(autoAdvances: true)
            let recorder = EventRecorder()
            configuration.observers.append(recorder)
            let client = Pipeline(transport: transport, retrierFactory: .default, configuration: configuration)

            let url = try #require(URL(string: "https://example.com/greeting"))
            let (data, _) = try await client.data(from: url)

            #expect(data == Data("hello".utf8))
            #expect(transport.sent.count == 3)
            #expect(recorder.events(.retryScheduled).count == 2)
        }
    }
}
