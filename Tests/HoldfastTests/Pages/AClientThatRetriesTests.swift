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

/// A server that fails once.
@Suite("A client that holds fast, retries", .timeLimit(.minutes(20)))
struct AClientThatRetriesTests {
    private struct Journal: ServiceHook {}

    private static func server() throws -> LoopbackServer {
        let asked = Atomic<Int>(0)
        return try LoopbackServer.start { _ in
            guard asked.add(1, ordering: .relaxed).newValue > 1 else { return LoopbackReply(503, body: "") }
            return LoopbackReply(fields: [("Cache-Control", "max-age=60")], body: "sun")
        }
    }

    @Test("4.1: the call is retried")
    func retries() async throws {
        struct Forecasts {
            let cache = HTTPCache.inMemory(capacity: 16 << 20)
            let client: Pipeline

            init() {
                client = Pipeline(
                    transport: URLSessionTransport(),
                    cache: cache,
                    retrierFactory: .default,
                    hooks: [Journal()]
                )
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
        #expect(try await forecasts.load(server.url()) == Data("sun".utf8))
        forecasts.report()
        #expect(server.requests.count == 2)
    }

    @Test("4.2: every attempt is reported")
    func attempts() async throws {
        struct Forecasts {
            let cache = HTTPCache.inMemory(capacity: 16 << 20)
            let client: Pipeline

            init() {
                client = Pipeline(
                    transport: URLSessionTransport(),
                    cache: cache,
                    retrierFactory: .default,
                    hooks: [Journal()]
                )
            }

            func load(_ url: URL) async throws -> Data {
                let response = try await client.send(URLRequest(url: url))
                guard response.status == .ok else { throw URLError(.badServerResponse) }
                print(response.source, response.cacheDecision?.description ?? "")
                for attempt in response.attempts {
                    print(attempt.number, attempt.status ?? 0, attempt.delay ?? .zero)
                }
                return try await response.body.data(upTo: 1 << 20)
            }

            func report() {
                let statistics = cache.statistics
                print(statistics.requests, "requests,", statistics.hits, "hits,", statistics.bytesSaved, "bytes saved")
            }
        }
        let server = try Self.server()
        let forecasts = Forecasts()
        #expect(try await forecasts.load(server.url()) == Data("sun".utf8))
        forecasts.report()
        #expect(server.requests.count == 2)
    }
}
