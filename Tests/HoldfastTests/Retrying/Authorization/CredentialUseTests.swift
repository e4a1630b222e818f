// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastSemantics
import HoldfastStorage
import HoldfastTesting
import Synchronization
import Testing

@testable import Holdfast

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("Authorization: where a credential goes", .timeLimit(.minutes(20)))
struct CredentialUseTests {
    @Test("403, 407 and other responses never cause a refresh", arguments: [400, 403, 404, 407, 429, 500])
    func otherStatuses(_ status: Int) async throws {
        let server = TokenServer(accepts: [])
        let pipeline = server.pipeline(server.tokens(), ScriptedTransport([.respond(status)]))
        #expect(try await pipeline.send(.get(TokenServer.url)).status.rawValue == status)
        #expect(server.refreshes.count == 0)
    }

    @Test(
        "The statuses that refuse a credential can be configured, except 403",
        arguments: [(407, 1), (403, 0), (401, 0)]
    )
    func configuredStatus(status: Int, refreshes: Int) async throws {
        let count = CountWatch()
        let tokens = AuthorizationRefresh(
            credential: "a",
            for: TokenServer.scope,
            statuses: [.proxyAuthenticationRequired, .forbidden],
            apply: { $1.setValue($0, forHTTPHeaderField: "Proxy-Authorization") },
            refresh: { _ in
                count.increment()
                return "b"
            }
        )
        let transport = ScriptedTransport([.respond(status), .respond(200)])
        _ = try await TokenServer(accepts: []).pipeline(tokens, transport).send(.get(TokenServer.url))
        #expect(count.count == refreshes)
        #expect(
            transport.sent.last?.request.value(forHTTPHeaderField: "Proxy-Authorization")
                == (refreshes == 1 ? "b" : "a")
        )
    }

    @Test("A request with its own Authorization field is left alone")
    func own() async throws {
        let server = TokenServer(accepts: ["t1"])
        let transport = server.transport
        let request = URLRequest.get(TokenServer.url, ["Authorization": "Basic own"])
        #expect(try await server.pipeline(server.tokens(), transport).send(request).status == .unauthorized)
        #expect(transport.credentials == ["Basic own"])
        #expect(server.refreshes.count == 0)
    }

    @Test(
        "A request to another origin gets no credential and no refresh",
        arguments: [
            "http://api.example/a", "https://api.example:8443/a", "https://api.example.evil/a", "https://x@evil/a",
        ]
    )
    func elsewhere(_ url: String) async throws {
        let server = TokenServer(accepts: ["t1"])
        let transport = server.transport
        #expect(try await server.pipeline(server.tokens(), transport).send(.get(url)).status == .unauthorized)
        #expect(transport.credentials == [nil])
        #expect(server.refreshes.count == 0)
    }

    @Test("RFC 9110 §15.4: a redirect to another origin drops the credential, whatever field it is in")
    func redirected() async throws {
        for isListed in [false, true] {
            let scope: CredentialScope =
                isListed ? ["https://api.example", "https://files.example"] : .matching { $0.scheme == "https" }
            let refreshes = CountWatch()
            let tokens = AuthorizationRefresh(
                credential: "k0",
                for: scope,
                apply: { $1.setValue($0, forHTTPHeaderField: "X-API-Key") },
                refresh: { _ in
                    refreshes.increment()
                    return "k1"
                }
            )
            let transport = ScriptedTransport([
                .respond(302, ["Location": "https://files.example/b"]), .respond(401), .respond(200),
            ])
            let response = try await TokenServer(accepts: []).pipeline(tokens, transport).send(.get(TokenServer.url))
            let keys = transport.sent.map { $0.request.value(forHTTPHeaderField: "X-API-Key") }
            #expect(keys == (isListed ? ["k0", "k0", "k1"] : ["k0", nil]))
            #expect(response.status == (isListed ? .ok : .unauthorized))
            #expect(refreshes.count == (isListed ? 1 : 0))
        }
    }

    @Test("A redirect within the origin keeps it, and each hop has its own resend")
    func hops() async throws {
        let server = TokenServer(accepts: ["t1"])
        let transport = ScriptedTransport([
            .respond(401), .respond(302, ["Location": "/b"]), .respond(401), .respond(200),
        ])
        #expect(try await server.pipeline(server.tokens(), transport).send(.get(TokenServer.url)).status == .ok)
        #expect(transport.credentials == ["Bearer t0", "Bearer t1", "Bearer t1", "Bearer t2"])
    }

    @Test(
        "Without a credential the first calls request one before sending, once for all; if that fails, nothing is sent"
    )
    func none() async throws {
        let server = TokenServer(accepts: ["t2"])
        let clock = ManualClock()
        let tokens = server.tokens(from: nil, failing: [1])
        let transport = server.transport
        let pipeline = server.pipeline(tokens, transport, clock: clock)
        for _ in 1...2 {
            do {
                _ = try await pipeline.send(.get(TokenServer.url))
                Issue.record("the call should fail")
            } catch let error as ServiceError {
                #expect(error.code == .authorizationFailed)
                #expect(error.progress == .notSent)
            }
        }
        #expect(transport.sent.isEmpty)
        #expect(server.refreshes.count == 1)
        clock.advance(by: .seconds(10))
        let calls = (0..<10).map { _ in Task { try await pipeline.send(.get(TokenServer.url)) } }
        for call in calls { #expect(try await call.value.status == .ok) }
        #expect(server.refreshes.count == 2)
        #expect(transport.credentials == Array(repeating: "Bearer t2", count: 10))
    }

    @Test(
        "A credential with a known expiry is renewed before it, once for all; if that fails it is used until it expires"
    )
    func expiry() async throws {
        struct Token: Sendable {
            var text: String
            var end: Timestamp
        }
        let clock = ManualClock()
        let refreshes = CountWatch()
        let start = clock.timestamp
        let tokens = AuthorizationRefresh(
            credential: Token(text: "t0", end: start.advanced(by: .seconds(60))),
            for: TokenServer.scope,
            expiresAt: { $0.end },
            apply: { $1.setValue("Bearer \($0.text)", forHTTPHeaderField: "Authorization") },
            refresh: { last in
                refreshes.increment()
                if refreshes.count == 1 { throw TokenServer.Refused() }
                return Token(text: "t\(refreshes.count)", end: start.advanced(by: .seconds(600)))
            }
        )
        let transport = ScriptedTransport([.respond()], repeatsLastStep: true)
        let pipeline = TokenServer(accepts: []).pipeline(tokens, transport, clock: clock)
        for step: Duration in [.seconds(49), .seconds(2), .seconds(8), .seconds(3)] {
            clock.advance(by: step)
            _ = try await pipeline.send(.get(TokenServer.url))
        }
        #expect(transport.credentials == ["Bearer t0", "Bearer t0", "Bearer t0", "Bearer t2"])
        #expect(refreshes.count == 2)
    }

    @Test("A one-shot body is resent with the new credential; one beyond the limit is not, and the 401 is returned")
    func body() async throws {
        for (count, isResent) in [(1_000, true), (100_000, false)] {
            let server = TokenServer(accepts: ["t1"])
            let transport = server.transport
            let bytes = ByteChunk(copying: [UInt8](repeating: 7, count: count))
            let response = try await server.pipeline(server.tokens(), transport).send(
                .request("POST", TokenServer.url),
                body: .oneShot(ListSource([bytes]))
            )
            #expect(response.status == (isResent ? .ok : .unauthorized))
            #expect(transport.sent.map(\.body) == Array(repeating: bytes, count: isResent ? 2 : 1))
            #expect(response.attempts.last?.stopReason == (isResent ? nil : .notReplayable))
            // The next call has it all the same.
            #expect(server.refreshes.count == 1)
        }
    }

    @Test("With a principal the cache is the same for any version; without one a new credential starts afresh")
    func principal() async throws {
        for (principal, sends) in [("me", 2), (nil, 3)] {
            let server = TokenServer(accepts: ["t1"])
            let transport = server.transport
            let cache = HTTPCache(store: MemoryStore(capacity: 1 << 20))
            let pipeline = server.pipeline(server.tokens(principal: principal), transport, cache: cache)
            for _ in 1...3 { #expect(try await pipeline.send(.get(TokenServer.url)).status == .ok) }
            #expect(transport.sent.count == sends)
        }
    }

    @Test("By a clock that is ahead a new credential has expired: it is sent all the same, and not refreshed again")
    func clockAhead() async throws {
        struct Token: Sendable {
            var text: String
            var end: Timestamp
        }
        let clock = ManualClock()
        let refreshes = CountWatch()
        let past = clock.timestamp.advanced(by: .seconds(-3600))
        let first: Token? = nil
        let tokens = AuthorizationRefresh(
            credential: first,
            for: TokenServer.scope,
            expiresAt: { $0.end },
            apply: { $1.setValue("Bearer \($0.text)", forHTTPHeaderField: "Authorization") },
            refresh: { _ in
                refreshes.increment()
                return Token(text: "t\(refreshes.count)", end: past)
            }
        )
        let transport = ScriptedTransport([.respond()], repeatsLastStep: true)
        let pipeline = TokenServer(accepts: []).pipeline(tokens, transport, clock: clock)
        for _ in 1...3 { _ = try await pipeline.send(.get(TokenServer.url)) }
        #expect(transport.credentials == Array(repeating: "Bearer t1", count: 3))
        #expect(refreshes.count == 1)
    }
}

/// A pipeline that a refresh reaches although it was made later.
final class PipelineBox: Sendable {
    private let held = Mutex<Pipeline?>(nil)

    var pipeline: Pipeline {
        get {
            guard let pipeline = held.withLock({ $0 }) else { preconditionFailure("no pipeline yet") }
            return pipeline
        }
        set { held.withLock { $0 = newValue } }
    }
}
