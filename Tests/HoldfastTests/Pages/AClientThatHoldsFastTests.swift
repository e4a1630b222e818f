// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastTesting
import Synchronization
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The steps of a client that holds fast, one after another, against a server.
@Suite("A client that holds fast", .timeLimit(.minutes(20)))
struct AClientThatHoldsFastTests {
    /// Answers with a forecast that is fresh for a minute, after so many failures.
    private static func server(failures: Int = 0) throws -> LoopbackServer {
        let asked = Atomic<Int>(0)
        return try LoopbackServer.start { _ in
            guard asked.add(1, ordering: .relaxed).newValue > failures else { return LoopbackReply(503, body: "") }
            return LoopbackReply(fields: [("Cache-Control", "max-age=60")], body: "sun")
        }
    }

    @Test("1.1: a pipeline")
    func pipeline() async throws {
        struct Forecasts {
            let client = Pipeline(transport: URLSessionTransport())
        }
        #expect(Forecasts().client.cache == nil)
    }

    @Test("1.2: the receiver changes and nothing else")
    func receiver() async throws {
        struct Forecasts {
            let client = Pipeline(transport: URLSessionTransport())

            func load(_ url: URL) async throws -> Data {
                let (data, response) = try await client.data(from: url)
                guard (response as? HTTPURLResponse)?.statusCode == 200 else { throw URLError(.badServerResponse) }
                return data
            }
        }
        let server = try Self.server(failures: 1)
        await #expect(throws: URLError.self) { try await Forecasts().load(server.url()) }
        #expect(try await Forecasts().load(server.url()) == Data("sun".utf8))
    }

    @Test("2.1: the second call sends nothing")
    func cache() async throws {
        struct Forecasts {
            let cache = HTTPCache.inMemory(capacity: 16 << 20)
            let client: Pipeline

            init() {
                client = Pipeline(transport: URLSessionTransport(), cache: cache)
            }

            func load(_ url: URL) async throws -> Data {
                let (data, response) = try await client.data(from: url)
                guard (response as? HTTPURLResponse)?.statusCode == 200 else { throw URLError(.badServerResponse) }
                return data
            }
        }
        let server = try Self.server()
        let forecasts = Forecasts()
        for _ in 1...2 { #expect(try await forecasts.load(server.url()) == Data("sun".utf8)) }
        #expect(server.requests.count == 1)
        #expect(forecasts.cache.statistics.hits == 1)
    }

    @Test("2.2: where it came from")
    func source() async throws {
        struct Forecasts {
            let cache = HTTPCache.inMemory(capacity: 16 << 20)
            let client: Pipeline

            init() {
                client = Pipeline(transport: URLSessionTransport(), cache: cache)
            }

            func load(_ url: URL) async throws -> Data {
                let response = try await client.send(URLRequest(url: url))
                guard response.status == .ok else { throw URLError(.badServerResponse) }
                print(response.source, response.cacheDecision?.description ?? "")
                return try await response.body.data(upTo: 1 << 20)
            }
        }
        let server = try Self.server()
        let forecasts = Forecasts()
        for _ in 1...2 { #expect(try await forecasts.load(server.url()) == Data("sun".utf8)) }
        let third = try await forecasts.client.send(URLRequest(url: server.url()))
        #expect(third.source == .fresh)
    }

    @Test("2.3: what was saved")
    func savings() async throws {
        struct Forecasts {
            let cache = HTTPCache.inMemory(capacity: 16 << 20)
            let client: Pipeline

            init() {
                client = Pipeline(transport: URLSessionTransport(), cache: cache)
            }

            func load(_ url: URL) async throws -> Data {
                let response = try await client.send(URLRequest(url: url))
                guard response.status == .ok else { throw URLError(.badServerResponse) }
                print(response.source, response.cacheDecision?.description ?? "")
                return try await response.body.data(upTo: 1 << 20)
            }

            func report() {
                let statistics = cache.statistics
                print(statistics.requests, "requests,", statistics.hits, "hits,", statistics.bytesSaved, "bytes saved")
            }
        }
        let server = try Self.server()
        let forecasts = Forecasts()
        for _ in 1...2 { _ = try await forecasts.load(server.url()) }
        forecasts.report()
        #expect(forecasts.cache.statistics.bytesSaved == 3)
    }

    @Test("3.1: a hook names the program")
    func name() async throws {
        struct Journal: ServiceHook {
            func onSchedule(_ request: inout URLRequest, _ context: inout CallContext) async throws -> Response? {
                request.setValue("forecasts/1.0", forHTTPHeaderField: "User-Agent")
                return nil
            }
        }
        let server = try Self.server()
        let client = Pipeline(transport: URLSessionTransport(), hooks: [Journal()])
        _ = try await client.data(from: server.url())
        #expect(server.requests.first?.values(of: "User-Agent") == ["forecasts/1.0"])
    }

    @Test("3.2 and 3.3: a hook looks at responses, and the pipeline uses it")
    func hook() async throws {
        struct Journal: ServiceHook {
            func onSchedule(_ request: inout URLRequest, _ context: inout CallContext) async throws -> Response? {
                request.setValue("forecasts/1.0", forHTTPHeaderField: "User-Agent")
                return nil
            }

            func onSuccess(
                _ response: inout Response,
                _ request: URLRequest,
                _ context: inout CallContext
            ) async throws {
                if !response.source.isFromStore { print("asked the network for", request.url?.path ?? "") }
            }
        }
        struct Forecasts {
            let cache = HTTPCache.inMemory(capacity: 16 << 20)
            let client: Pipeline

            init() {
                client = Pipeline(transport: URLSessionTransport(), cache: cache, hooks: [Journal()])
            }

            func load(_ url: URL) async throws -> Data {
                let response = try await client.send(URLRequest(url: url))
                guard response.status == .ok else { throw URLError(.badServerResponse) }
                print(response.source, response.cacheDecision?.description ?? "")
                return try await response.body.data(upTo: 1 << 20)
            }

            func report() {
                let statistics = cache.statistics
                print(statistics.requests, "requests,", statistics.hits, "hits,", statistics.bytesSaved, "bytes saved")
            }
        }
        let server = try Self.server()
        let forecasts = Forecasts()
        for _ in 1...2 { _ = try await forecasts.load(server.url()) }
        forecasts.report()
        #expect(server.requests.count == 1)
        #expect(server.requests.first?.values(of: "User-Agent") == ["forecasts/1.0"])
    }
}
