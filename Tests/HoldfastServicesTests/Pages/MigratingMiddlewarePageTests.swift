// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastServices
import HoldfastTesting
import Synchronization
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("docs/migrating.md: Alamofire, Moya, URLCache", .timeLimit(.minutes(20)))
struct MigratingMiddlewarePageTests {
    struct LongLivedImages: Transport {
        let transport: any Transport

        func send(_ request: URLRequest, body: RequestBody, context: CallContext) async throws -> Response {
            var response = try await transport.send(request, body: body, context: context)
            if request.url?.path.hasPrefix("/images/") == true { response.fields[.cacheControl] = "max-age=86400" }
            return response
        }

        func implicitFields(for request: URLRequest) -> HeaderFields { transport.implicitFields(for: request) }
        func implicitFields(for request: URLRequest, context: CallContext) -> HeaderFields {
            transport.implicitFields(for: request, context: context)
        }
        var enforcesDeadline: Bool { transport.enforcesDeadline }
    }

    struct TraceHook: ServiceHook {
        let spinner: Spinner

        func onSchedule(_ request: inout URLRequest, _ context: inout CallContext) async throws -> Response? {
            request.setValue(UUID().uuidString, forHTTPHeaderField: "X-Request-ID")
            spinner.begin()
            return nil
        }

        func onSuccess(_ response: inout Response, _ request: URLRequest, _ context: inout CallContext) async throws {
            spinner.end()
            guard response.status == .notFound else { return }
            response = Response(status: .ok, body: ResponseBody(ByteChunk(copying: "[]".utf8)), url: request.url)
        }

        func onFailure(_ error: any Error, _ request: URLRequest, _ context: inout CallContext) async -> Response? {
            spinner.end()
            return nil
        }

        func onCancel(_ request: URLRequest, _ context: CallContext) {
            spinner.end()
        }
    }

    final class Spinner: Sendable {
        private let turning = Mutex((now: 0, ever: 0))

        var counts: (now: Int, ever: Int) { turning.withLock { $0 } }

        func begin() {
            turning.withLock {
                $0.now += 1
                $0.ever += 1
            }
        }

        func end() { turning.withLock { $0.now -= 1 } }
    }

    private actor Tokens {
        private(set) var renewals = 0

        func renew(_ last: String?) async throws -> String {
            renewals += 1
            return "new"
        }
    }

    private func request(_ path: String) throws -> URLRequest {
        URLRequest(url: try #require(URL(string: "https://api.example.com/" + path)))
    }

    @Test("RequestInterceptor: adapt and retry")
    func interceptor() async throws {
        let tokens = Tokens()
        let transport = ScriptedTransport([.respond(401), .respond(200)])
        var configuration = PipelineConfiguration()
        configuration.authorization = .bearer(token: "old", for: ["https://api.example.com"]) { last in
            try await tokens.renew(last)
        }
        configuration.prepare = [{ request, _ in request.setValue("linux", forHTTPHeaderField: "X-Platform") }]
        let client = Pipeline(transport: transport, configuration: configuration)
        #expect(try await client.send(try request("account")).status == .ok)
        let sent = transport.sent.map(\.request)
        #expect(sent.map { $0.value(forHTTPHeaderField: "Authorization") } == ["Bearer old", "Bearer new"])
        #expect(sent.allSatisfy { $0.value(forHTTPHeaderField: "X-Platform") == "linux" })
        #expect(await tokens.renewals == 1)
    }

    @Test("RetryPolicy")
    func retryPolicy() async throws {
        let transport = ScriptedTransport([.respond(503), .respond(425), .respond(500), .respond(200)])
        let clock = ManualClock(autoAdvances: true)
        var configuration = PipelineConfiguration()
        configuration.clock = clock
        var rules = RetryRules.default
        rules.maxAttempts = 4
        rules.backoff = Backoff(base: .milliseconds(500), cap: .seconds(20), jitter: .equal)
        // Not in the list above, and retried by default.
        rules.finalStatuses = [429]
        let client = Pipeline(transport: transport, retrierFactory: .backoff(rules), configuration: configuration)
        #expect(try await client.send(try request("list")).status == .ok)
        #expect(transport.sent.count == 4)
        #expect(clock.waits.allSatisfy { $0 >= .milliseconds(250) && $0 <= .seconds(20) })
        for status in [429, 501] as [StatusCode] {
            let refused = ScriptedTransport([.respond(status.rawValue)])
            let other = Pipeline(transport: refused, retrierFactory: .backoff(rules), configuration: configuration)
            #expect(try await other.send(try request("list")).status == status)
        }
    }

    @Test("CachedResponseHandler")
    func cachedResponseHandler() async throws {
        let (image, account) = (try request("images/1"), try request("account"))
        let transport = ScriptedTransport([.respond(200, ["Cache-Control": "max-age=60"])], repeatsLastStep: true)
        let client = Pipeline(transport: LongLivedImages(transport: transport), cache: .default)
        let picture = try await client.send(image)
        var options = CallOptions()
        options.cache = .noStore
        let balance = try await client.send(account, options: options)
        _ = try await (picture.body.collect(), balance.body.collect())
        await client.drain()
        let stored = try await client.send(image)
        #expect(stored.source == .fresh)
        #expect(stored.fields[.cacheControl] == "max-age=86400")
        #expect(try await client.send(account).source == .network(attempts: 1))
    }

    @Test("Moya's plugins")
    func plugins() async throws {
        let spinner = Spinner()
        let transport = ScriptedTransport([.respond(404), .fail(.connectionLost, progress: .bodySent), .respond(200)])
        let request = try request("list")
        let client = Pipeline(transport: transport, hooks: [TraceHook(spinner: spinner)])
        let response = try await client.send(request)
        #expect(response.status == .ok)
        #expect(try await response.body.data() == Data("[]".utf8))
        await #expect(throws: ServiceError.self) { try await client.send(request) }
        #expect(spinner.counts == (now: 0, ever: 2))
        #expect(transport.sent.allSatisfy { $0.request.value(forHTTPHeaderField: "X-Request-ID") != nil })
    }

    @Test("URLCache")
    func urlCache() async throws {
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        defer { try? FileManager.default.removeItem(at: directory) }
        let steps: [ScriptedTransport.Step] = [.respond(200, ["Cache-Control": "max-age=60"], body: "body")]
        let transport = ScriptedTransport(steps, repeatsLastStep: true)
        let request = try request("articles/1")
        let url = try #require(request.url)
        let folder = url.deletingLastPathComponent()
        let cache = try await HTTPCache.tiered(at: directory, memory: 32 << 20, capacity: 256 << 20)
        let client = Pipeline(transport: transport, cache: cache)
        let (data, response) = try await client.data(for: request)
        #expect(data == Data("body".utf8))
        #expect((response as? HTTPURLResponse)?.statusCode == 200)
        await client.drain()
        _ = try await client.data(for: request)
        #expect(transport.sent.count == 1)
        try await cache.remove(.url(url))
        try await cache.markStale(.path(folder))
        try await cache.remove(.all)
        await cache.close()
        #expect(transport.sent.count == 1)
    }
}
