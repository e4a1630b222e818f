// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastTesting
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The code of the articles in `Holdfast.docc` on the cache and on retries.
@Suite("Catalog: the cache, retries", .timeLimit(.minutes(20)))
struct HoldfastSteeringCatalogTests {
    private let request = URLRequest.get("http://origin.example/news/a")
    private let step = ScriptedTransport.Step.respond(200, ["Cache-Control": "max-age=60"], body: "hello")

    @Test("One call, removing, pinning")
    func steering() async throws {
        let transport = ScriptedTransport([step], repeatsLastStep: true)
        let cache = HTTPCache.inMemory()
        let client = Pipeline(transport: transport, cache: cache)
        let articles = try #require(URL(string: "http://origin.example/news/"))
        let frontPage = try #require(request.url)
        var options = CallOptions()
        options.cache = .maxStale(.seconds(300))
        options.cache.serveStaleAfter = .seconds(2)
        options.tags = ["news"]
        let (data, _) = try await client.data(for: request, options: options)
        #expect(data == Data("hello".utf8))
        await client.drain()
        try await cache.remove(.tag("news"))
        try await cache.markStale(.path(articles))
        try await cache.pin(.url(frontPage))
        _ = try await client.data(for: request)
        #expect(transport.sent.count == 2)
    }

    @Test("Fetching ahead, and showing something at once")
    func fetching() async throws {
        let client = Pipeline(transport: ScriptedTransport([step], repeatsLastStep: true), cache: .inMemory())
        let requests = [request, .get("http://origin.example/news/b")]
        let report = await client.prefetch(requests)
        print(report.storedCount, report.failedRequests.count)
        #expect(report.storedCount == 2)
        var shown: [Data] = []
        for try await response in client.staleThenFresh(for: request) {
            shown.append(try await response.body.data())
        }
        #expect(shown == [Data("hello".utf8)])
    }

    @Test("Rules of a cache")
    func rules() async throws {
        var rules = CacheOptions.shared
        rules.staleWhenDisconnected = .seconds(3600)
        rules.rules = [
            try CacheRule(
                hosts: ["shop.example"],
                query: QueryOptions(sortsNames: true, ignoredNames: ["utm_*"])
            )
        ]
        let cache = HTTPCache.inMemory(capacity: 32 << 20, options: rules)
        let client = Pipeline(transport: ScriptedTransport([step]), cache: cache)
        _ = try await client.data(for: .get("https://shop.example/?a=1&b=2"))
        await client.drain()
        _ = try await client.data(for: .get("https://shop.example/?b=2&a=1&utm_source=x"))
        #expect(cache.statistics.hits == 1)
    }

    @Test("A preset")
    func preset() async throws {
        let transport = ScriptedTransport([.respond()])
        let client = Pipeline(transport: transport, retrierFactory: .patient)
        #expect(try await client.send(request).status == .ok)
    }

    @Test("Retry rules")
    func retryRules() async throws {
        let transport = ScriptedTransport([.respond()])
        var rules = RetryRules.default
        rules.maxAttempts = 6
        rules.backoff = Backoff(base: .milliseconds(200), cap: .seconds(10), jitter: .decorrelated)
        try rules.validate()
        let client = Pipeline(transport: transport, retrierFactory: .backoff(rules))
        #expect(try await client.send(request).status == .ok)
    }

    @Test("Retries of one call")
    func oneCall() async throws {
        var configuration = PipelineConfiguration()
        configuration.clock = ManualClock(autoAdvances: true)
        let transport = ScriptedTransport([.respond(503), .respond(201)])
        let client = Pipeline(transport: transport, retrierFactory: .default, configuration: configuration)
        let order = URLRequest.request("POST", "http://origin.example/orders")
        var options = CallOptions()
        options.retryRules = .strict
        options.isIdempotent = true
        options.timeout = .seconds(3)
        let response = try await client.send(order, options: options)
        #expect(response.status == .created)
        #expect(response.attempts.count == 2)
    }

    @Test("A token")
    func token() async throws {
        let saved: String? = "old"
        let renew: @Sendable (String?) async throws -> String = { _ in "new" }
        var configuration = PipelineConfiguration()
        configuration.authorization = .bearer(token: saved, for: ["https://api.example.com"]) { expired in
            try await renew(expired)
        }
        let transport = ScriptedTransport([.respond(401), .respond()])
        let client = Pipeline(transport: transport, configuration: configuration)
        #expect(try await client.send(.get("https://api.example.com/a")).status == .ok)
        #expect(transport.sent.last?.request.value(forHTTPHeaderField: "Authorization") == "Bearer new")
    }

    struct Conflicts: Retrier {
        func retry(
            _ request: URLRequest,
            after attempt: FailedAttempt,
            context: CallContext
        ) async -> RetryDecision {
            attempt.response?.status == .conflict ? .retry(after: .seconds(1)) : .stop(.retrierDeclined)
        }
    }

    @Test("A custom retrier")
    func ownRetrier() async throws {
        let factory = ChainRetrier.factory([AnyRetrierFactory { _ in Conflicts() }, .default])
        var configuration = PipelineConfiguration()
        configuration.clock = ManualClock(autoAdvances: true)
        let transport = ScriptedTransport([.respond(409), .respond()])
        let client = Pipeline(transport: transport, retrierFactory: factory, configuration: configuration)
        #expect(try await client.send(request).status == .ok)
    }
}
