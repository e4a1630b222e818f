// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastSemantics
import HoldfastTesting
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The code of docs/retrying.md, block by block, and of README.md on retries.
@Suite("Page: Retrying", .timeLimit(.minutes(20)))
struct RetryingPageTests {
    private func tiredServer() throws -> LoopbackServer {
        try LoopbackServer.start { request in
            request.number < 1 ? LoopbackReply(503) : LoopbackReply(body: "awake")
        }
    }

    @Test("The default")
    func standard() async throws {
        let server = try tiredServer()
        let client = Pipeline(transport: URLSessionTransport(), retrierFactory: .default)
        let response = try await client.send(URLRequest(url: server.url()))
        #expect(response.status == .ok && response.attempts.map(\.status) == [503, 200])
    }

    @Test("The default, in README.md")
    func readme() async throws {
        let server = try tiredServer()
        let client = Pipeline(transport: URLSessionTransport(), retrierFactory: .default)  // .patient, .gateway, …
        #expect(try await client.data(for: URLRequest(url: server.url())).0 == Data("awake".utf8))
    }

    @Test("Custom rules")
    func rules() async throws {
        let transport = ScriptedTransport([.respond(503), .respond(503), .respond(200)])
        var rules = RetryRules.default
        rules.backoff = Backoff(base: .milliseconds(50), cap: .seconds(5), jitter: .equal)
        rules.maxAttempts = 5
        let client = Pipeline(transport: transport, retrierFactory: .backoff(rules))
        try rules.validate()
        #expect(try await client.send(.get()).attempts.count == 3)
    }

    private struct Accounts {
        func renew(_ expired: String?) async throws -> String { "new after \(expired ?? "none")" }
    }

    @Test("Authorization")
    func authorization() async throws {
        let (accounts, saved) = (Accounts(), "old")
        let api: CredentialScope = ["https://api.example.com"]
        var configuration = PipelineConfiguration()
        configuration.authorization = .bearer(token: saved, for: api, principal: "me") { expired in
            try await accounts.renew(expired)
        }
        let transport = ScriptedTransport([.respond(401), .respond()])
        let client = Pipeline(transport: transport, configuration: configuration)
        #expect(try await client.send(.get("https://api.example.com/a")).status == .ok)
        let sent = transport.sent.map { $0.request.value(forHTTPHeaderField: "Authorization") }
        #expect(sent == ["Bearer old", "Bearer new after old"])
    }

    @Test("URLError, for code that comes from URLSession (docs/migrating.md)")
    func urlError() async throws {
        let client = Pipeline(transport: ScriptedTransport([.fail(.timeout, progress: .bodySent)]))
        let slow = Pipeline(transport: ScriptedTransport([.respond(body: "late")]))
        let request = URLRequest.get()
        func load() async throws -> (Data, URLResponse) {
            do {
                return try await client.data(for: request)
            } catch let error as ServiceError where error.urlError.code == .timedOut {
                return try await slow.data(for: request)
            }
        }
        #expect(try await load().0 == Data("late".utf8))
    }

    struct Steady: Retrier {
        var allowsMultipleRetries: Bool { true }

        func retry(_ request: URLRequest, after attempt: FailedAttempt, context: CallContext) async -> RetryDecision {
            switch attempt.classification {
            case .never(let reason): .stop(reason)
            case .unprocessed: .retryNow
            case .staleSocket, .ambiguous, .throttled: .retry(after: .seconds(1))
            }
        }
    }

    @Test("A custom retrier")
    func own() async throws {
        let factory = AnyRetrierFactory(governor: RetryGovernor(.default)) { _ in Steady() }
        let transport = ScriptedTransport([.fail(.connect, progress: .notSent), .respond(503), .respond(404)])
        var configuration = PipelineConfiguration()
        configuration.clock = ManualClock(autoAdvances: true)
        let client = Pipeline(transport: transport, retrierFactory: factory, configuration: configuration)
        let response = try await client.send(.get())
        #expect(response.attempts.map(\.status) == [nil, 503, 404])
        #expect(response.attempts.last?.stopReason == .notRetryable)
    }
}
