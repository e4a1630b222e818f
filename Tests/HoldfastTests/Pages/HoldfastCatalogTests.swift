// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastSimulation
import HoldfastTesting
import Synchronization
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The code of the articles in `Holdfast.docc` on wrapping a client, hooks and watching.
@Suite("Catalog: wrapping, hooks, watching", .timeLimit(.minutes(20)))
struct HoldfastCatalogTests {
    private let request = URLRequest.get("http://origin.example/a")
    private let transport = ScriptedTransport(
        [.respond(200, ["Cache-Control": "max-age=60"], body: "hello")],
        repeatsLastStep: true
    )

    @Test("The landing page")
    func landing() async throws {
        let server = try LoopbackServer.start { _ in LoopbackReply(body: "hello") }
        let request = URLRequest(url: server.url())
        let cache = HTTPCache.inMemory(capacity: 32 << 20)
        let client = Pipeline(transport: URLSessionTransport(), cache: cache, retrierFactory: .default)
        let (data, response) = try await client.data(for: request)
        #expect(data == Data("hello".utf8))
        #expect((response as? HTTPURLResponse)?.statusCode == 200)
    }

    @Test("Wrapping a client")
    func wrapping() async throws {
        let server = try LoopbackServer.start { _ in
            LoopbackReply(fields: [("Cache-Control", "max-age=60")], body: "hello")
        }
        let folder = try Folder()
        let directory = folder.url.appendingPathComponent("cache")
        let request = URLRequest(url: server.url())
        var received = 0
        let cache = try await HTTPCache.onDisk(at: directory, capacity: 64 << 20)
        let client = Pipeline(transport: URLSessionTransport(), cache: cache, retrierFactory: .default)
        let (data, response) = try await client.data(for: request)
        #expect(data == Data("hello".utf8))
        #expect((response as? HTTPURLResponse)?.statusCode == 200)
        let answer = try await client.send(request)
        print(answer.status, answer.source, answer.attempts.count)
        for try await chunk in answer.body { received += chunk.count }
        #expect(received == 5)
        let session = URLSession(configuration: .holdfast(client))
        #expect(try await session.data(from: server.url()).0 == data)
        client.stopIntercepting()
        await client.drain()
        await cache.close()
        #expect(server.requests.count == 1)
    }

    struct ClientName: SynchronousServiceHook {
        let name: String

        func scheduled(_ request: inout URLRequest, context: inout CallContext) throws -> Response? {
            try request.setField("User-Agent", to: name)
            return nil
        }
    }

    struct Stopwatch: ServiceHook {
        struct Start: Sendable { let instant: MonotonicInstant }
        let report: @Sendable (Duration) -> Void

        func onSchedule(_ request: inout URLRequest, _ context: inout CallContext) async throws -> Response? {
            context[Start.self] = Start(instant: context.clock.now)
            return nil
        }

        func onSuccess(
            _ response: inout Response,
            _ request: URLRequest,
            _ context: inout CallContext
        ) async throws {
            if let start = context[Start.self] { report(start.instant.duration(to: context.clock.now)) }
        }
    }

    struct Apology: ServiceHook {
        func onFailure(_ error: any Error, _ request: URLRequest, _ context: inout CallContext) async -> Response? {
            guard (error as? ServiceError)?.code == .offline else { return nil }
            return Response(status: .serviceUnavailable, fields: ["Content-Type": "text/plain"])
        }
    }

    @Test("Writing a hook")
    func hooks() async throws {
        let times = Mutex<[Duration]>([])
        let log: @Sendable (Duration) -> Void = { time in times.withLock { $0.append(time) } }
        let client = Pipeline(transport: transport, hooks: [ClientName(name: "notes/1.0"), Stopwatch(report: log)])
        _ = try await client.send(request)
        #expect(transport.sent.first?.request.value(forHTTPHeaderField: "User-Agent") == "notes/1.0")
        #expect(times.withLock { $0.count } == 1)
        let offline = Pipeline(
            transport: ScriptedTransport([.fail(.offline, progress: .notSent)]),
            hooks: [Apology()]
        )
        #expect(try await offline.send(request).status == .serviceUnavailable)
    }

    @Test("Watching calls")
    func watching() async throws {
        let cache = HTTPCache.inMemory()
        let client = Pipeline(transport: transport, cache: cache)
        let recorder = HitRateRecorder(rate: 0.1)
        cache.record(with: recorder)
        for _ in 1...2 {
            let response = try await client.send(request)
            print(response.source, response.cacheDecision?.description ?? "no cache was asked")
            #expect(try await response.body.data() == Data("hello".utf8))
        }
        let statistics = cache.statistics
        print(statistics.hitRatio, statistics.byteHitRatio, statistics.timeSaved, statistics.bytesSaved)
        print(statistics.reasons)
        #expect(statistics.hitRatio == 0.5)
        for estimate in recorder.estimate(capacities: [64 << 20, 256 << 20]) { print(estimate) }
    }

    @Test("A stream of events")
    func events() async throws {
        let stream = EventStream(names: [.retryScheduled, .callEnded])
        var configuration = PipelineConfiguration()
        configuration.observers.append(stream)
        let client = Pipeline(transport: transport, retrierFactory: .default, configuration: configuration)
        _ = try await client.send(request)
        stream.finish()
        for await event in stream.events {
            print(event.name, event.url?.description ?? "", event.errorCode ?? "")
        }
        #expect(stream.droppedCount == 0)
    }
}
