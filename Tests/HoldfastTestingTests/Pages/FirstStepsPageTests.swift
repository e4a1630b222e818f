// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastSimulation
import HoldfastTesting
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Gives each call a name that the server can log, and prints how the call ended.
struct NamingHook: ServiceHook {
    let prefix: String

    func onSchedule(_ request: inout URLRequest, _ context: inout CallContext) async throws -> Response? {
        request.setValue("\(prefix)-\(context.callID.number)", forHTTPHeaderField: "X-Request-ID")
        return nil
    }

    func onSuccess(_ response: inout Response, _ request: URLRequest, _ context: inout CallContext) async throws {
        print(request.value(forHTTPHeaderField: "X-Request-ID") ?? "", response.status, response.source)
    }

    func onFailure(_ error: any Error, _ request: URLRequest, _ context: inout CallContext) async -> Response? {
        print(request.value(forHTTPHeaderField: "X-Request-ID") ?? "", error)
        return nil
    }
}

/// Sends a call again that the server answered with a 503: twice at most, after a wait that grows.
struct PersistentRetrier: Retrier {
    let allowsMultipleRetries = true

    func retry(_ request: URLRequest, after attempt: FailedAttempt, context: CallContext) async -> RetryDecision {
        guard attempt.response?.status == .serviceUnavailable, attempt.exchange.method.isIdempotent else {
            return .stop(.notRetryable)
        }
        return attempt.number > 2 ? .stop(.attemptsExhausted) : .retry(after: .milliseconds(20 * attempt.number))
    }

    struct Factory: RetrierFactory {
        let governor: RetryGovernor?

        func create(for request: URLRequest) -> any Retrier { PersistentRetrier() }
    }
}

/// The code of docs/first-steps.md from top to bottom, and that of docs/extending/writing-a-hook.md.
@Suite("docs/first-steps.md", .timeLimit(.minutes(20)))
struct FirstStepsPageTests {
    @Test("The walkthrough does what the page says")
    func walk() async throws {
        let server = try LoopbackServer.start { request in
            LoopbackReply(fields: [("Cache-Control", "max-age=3600")], body: "hello from \(request.path)")
        }
        let cache = HTTPCache.inMemory()
        let client = Pipeline(transport: URLSessionTransport(), cache: cache)

        for _ in 1...2 {
            let response = try await client.send(URLRequest(url: server.url("/greeting")))
            let text = String(decoding: try await response.body.data(), as: UTF8.self)
            print(text, "|", response.source, "|", response.cacheDecision?.description ?? "")
        }
        print("arrived: \(server.requests.count), hit ratio: \(cache.statistics.hitRatio)")
        #expect(server.requests.count == 1 && cache.statistics.hitRatio == 0.5)

        let hooked = Pipeline(transport: URLSessionTransport(), cache: cache, hooks: [NamingHook(prefix: "walk")])
        _ = try await hooked.data(for: URLRequest(url: server.url("/greeting")))
        _ = try await hooked.data(for: URLRequest(url: server.url("/farewell")))
        print("the server saw:", server.requests.last?.values(of: "X-Request-ID") ?? [])
        #expect(server.requests.map(\.path) == ["/greeting", "/farewell"])
        #expect(server.requests.last?.values(of: "X-Request-ID").count == 1)

        let tired = try LoopbackServer.start { request in
            request.number < 2 ? LoopbackReply(503) : LoopbackReply(body: "awake")
        }
        let retrying = Pipeline(
            transport: URLSessionTransport(),
            retrierFactory: PersistentRetrier.Factory(governor: RetryGovernor())
        )
        let answer = try await retrying.send(URLRequest(url: tired.url()))
        for attempt in answer.attempts {
            print(attempt.number, attempt.status ?? 0, attempt.delay ?? .zero)
        }
        #expect(answer.attempts.map(\.status) == [503, 503, 200])

        var outage = StormScenario.outage
        outage.seeds = [1]
        let free = try await Storm(outage).run { _, _ in PersistentRetrier.Factory(governor: nil) }
        let bound = try await Storm(outage).run { _, seed in PersistentRetrier.Factory(governor: RetryGovernor()) }
        let preset = try await Storm(outage).run(.default)
        for (name, reports) in [("without a budget", free), ("with one", bound), ("the default", preset)] {
            print(name, reports.figures.loadInFault ?? 0, reports.figures.success)
        }
        #expect((free.figures.loadInFault ?? 0) > 2.9)
        #expect((bound.figures.loadInFault ?? 9) < 1.2 && (preset.figures.loadInFault ?? 9) < 1.2)

        let stopwatch = ContinuousClock()
        for (name, client) in [("bare", Pipeline(transport: URLSessionTransport())), ("cached", client)] {
            let time = try await stopwatch.measure {
                for _ in 0..<200 { _ = try await client.data(for: URLRequest(url: server.url("/greeting"))) }
            }
            print(name, time / 200)
        }
        #expect(server.requests.count == 202)
    }
}
