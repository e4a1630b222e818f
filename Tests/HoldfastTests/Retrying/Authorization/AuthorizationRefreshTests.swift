// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastSemantics
import HoldfastTesting
import Testing

@testable import Holdfast

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("Authorization: one refresh for all", .timeLimit(.minutes(20)))
struct AuthorizationRefreshTests {
    @Test("Complaint 10 of 12 (Alamofire #3290): a hundred calls refused at once cause one refresh and one resend each")
    func storm() async throws {
        let server = TokenServer(accepts: ["t1"])
        let tokens = server.tokens(waitsAtGate: true)
        let transport = server.transport
        let pipeline = server.pipeline(tokens, transport)
        let statuses = try await withThrowingTaskGroup(of: Response.self) { group in
            for _ in 0..<100 { group.addTask { try await pipeline.send(.get(TokenServer.url)) } }
            await until { tokens.waiterCount == 100 }
            server.gate.increment()
            var responses: [Response] = []
            for try await response in group { responses.append(response) }
            return responses
        }
        #expect(statuses.map(\.status) == Array(repeating: .ok, count: 100))
        #expect(server.refreshes.count == 1)
        #expect(transport.credentials.filter { $0 == "Bearer t0" }.count == 100)
        #expect(transport.credentials.filter { $0 == "Bearer t1" }.count == 100)
    }

    @Test("A refresh that is given up before its task is known is cancelled with the task")
    func adoptedLate() async throws {
        let issued = IssuedCredential("t0", apply: { _, _ in }, expiresAt: { _ in nil }, refresh: { _ in "t1" })
        var state = RefreshState(issued, retryPause: .seconds(1))
        let now = ManualClock().now
        let waiter = state.enroll()
        var adopted: [RefreshState.Action] = []
        do {
            _ = try await withCheckedThrowingContinuation { (continuation: RefreshState.Continuation) in
                _ = state.join(waiter, newerThan: 1, continuation: continuation, now: now)
                for case .resume(let waiting, let result) in state.giveUp(1, for: CancellationError(), now: now) {
                    waiting.resume(with: result)
                }
                adopted = state.adopt(Task {}, of: 1)
            }
        } catch {
            #expect(error is RefreshFailure)
        }
        #expect(adopted.contains { if case .cancel = $0 { true } else { false } })
    }

    @Test("A call that was sent with an older version is sent again with the current one, without a refresh")
    func older() async throws {
        let server = TokenServer(accepts: ["t1"])
        let held = CountWatch()
        let transport = ScriptedTransport { request in
            if request.url?.path == "/slow" { try await held.wait(for: 1) }
            return server.answer(request)
        }
        let pipeline = server.pipeline(server.tokens(), transport)
        async let slow = pipeline.send(.get("https://api.example/slow"))
        try await transport.waitForSends(1)
        #expect(try await pipeline.send(.get(TokenServer.url)).status == .ok)
        held.increment()
        #expect(try await slow.status == .ok)
        #expect(server.refreshes.count == 1)
        #expect(transport.credentials == ["Bearer t0", "Bearer t0", "Bearer t1", "Bearer t1"])
    }

    @Test("A call that wants no credential sends none, and its 401 asks for no other")
    func none() async throws {
        let server = TokenServer(accepts: [])
        let transport = server.transport
        let pipeline = server.pipeline(server.tokens(), transport)
        var options = CallOptions()
        options.usesAuthorization = false
        #expect(try await pipeline.send(.get(TokenServer.url), options: options).status == .unauthorized)
        #expect(server.refreshes.count == 0)
        #expect(transport.sent.count == 1)
        #expect(transport.sent.first?.request.value(forHTTPHeaderField: "Authorization") == nil)
    }

    @Test("Exactly one resend: a second 401 is the result, body unread, and is listed beside the first")
    func once() async throws {
        let server = TokenServer(accepts: [])
        let transport = server.transport
        let pipeline = server.pipeline(server.tokens(), transport, retrierFactory: .backoff())
        let response = try await pipeline.send(.get(TokenServer.url))
        #expect(response.status == .unauthorized)
        #expect(try await response.read == "refused Bearer t1")
        #expect(response.attempts.map(\.status) == [.unauthorized, .unauthorized])
        #expect(response.attempts.map(\.stopReason) == [nil, .unauthorized])
        #expect(transport.credentials == ["Bearer t0", "Bearer t1"])
    }

    @Test("Exactly one resend even if a new credential could be refreshed again")
    func onceWithoutPause() async throws {
        let tokens = AuthorizationRefresh(
            credential: 0,
            for: TokenServer.scope,
            retryPause: .zero,
            apply: { $1.setValue("Bearer t\($0)", forHTTPHeaderField: "Authorization") },
            refresh: { ($0 ?? 0) + 1 }
        )
        let transport = ScriptedTransport([.respond(401), .respond(401), .respond(200)])
        let pipeline = TokenServer(accepts: []).pipeline(tokens, transport)
        #expect(try await pipeline.send(.get(TokenServer.url)).status == .unauthorized)
        #expect(transport.credentials == ["Bearer t0", "Bearer t1"])
    }

    @Test(
        "Alamofire #3297: a new credential that is refused everywhere causes no further refresh before the pause is over"
    )
    func refusedAnew() async throws {
        let server = TokenServer(accepts: [])
        let clock = ManualClock()
        let pipeline = server.pipeline(server.tokens(), clock: clock)
        for _ in 1...5 { #expect(try await pipeline.send(.get(TokenServer.url)).status == .unauthorized) }
        #expect(server.refreshes.count == 1)
        clock.advance(by: .seconds(10))
        #expect(try await pipeline.send(.get(TokenServer.url)).status == .unauthorized)
        #expect(server.refreshes.count == 2)
    }

    @Test("A credential that was accepted and then expires is renewed at once, however new it is")
    func acceptedThenEnded() async throws {
        let server = TokenServer(accepts: ["t1"])
        let pipeline = server.pipeline(server.tokens())
        #expect(try await pipeline.send(.get(TokenServer.url)).status == .ok)
        server.accept(["t2"])
        #expect(try await pipeline.send(.get(TokenServer.url)).status == .ok)
        #expect(server.refreshes.count == 2)
    }

    @Test("The resend is not an attempt of the policy, but is listed")
    func isNoRetry() async throws {
        let server = TokenServer(accepts: ["t1"])
        let transport = ScriptedTransport([.respond(401), .respond(503), .respond(503), .respond(200)])
        let clock = ManualClock(autoAdvances: true)
        let pipeline = server.pipeline(
            server.tokens(),
            transport,
            clock: clock,
            retrierFactory: .backoff(RetryRules(maxAttempts: 3))
        )
        let response = try await pipeline.send(.get(TokenServer.url))
        #expect(response.status == .ok)
        #expect(response.attempts.map(\.status?.rawValue) == [401, 503, 503, 200])
    }

    @Test(
        "Alamofire #3029: a failed refresh fails all waiters once, with its cause and the 401, and pauses"
    )
    func failed() async throws {
        let server = TokenServer(accepts: ["t2"])
        let clock = ManualClock()
        let tokens = server.tokens(waitsAtGate: true, failing: [1])
        let transport = server.transport
        let pipeline = server.pipeline(tokens, transport, clock: clock)
        let calls = (0..<10).map { _ in Task { try await pipeline.send(.get(TokenServer.url)) } }
        await until { tokens.waiterCount == 10 }
        server.gate.increment()
        for call in calls { await expectRefused { try await call.value } }
        await expectRefused { try await pipeline.send(.get(TokenServer.url)) }
        #expect(server.refreshes.count == 1)
        #expect(transport.sent.count == 11)
        clock.advance(by: tokens.retryPause)
        #expect(try await pipeline.send(.get(TokenServer.url)).status == .ok)
        #expect(server.refreshes.count == 2)
    }

    private func expectRefused(_ call: () async throws -> Response) async {
        do {
            _ = try await call()
            Issue.record("the call should fail")
        } catch let error as ServiceError {
            #expect(error.code == .authorizationFailed)
            #expect(error.cause as? TokenServer.Refused == TokenServer.Refused())
            #expect(error.response?.status == .unauthorized)
            #expect((try? await error.response?.read) == "refused Bearer t0")
            #expect(error.attempts.map(\.stopReason) == [.unauthorized])
        } catch {
            Issue.record("another error: \(error)")
        }
    }

    @Test(
        "E10: one waiter's cancellation cancels nothing, the last one's cancels the refresh, and the next call starts anew"
    )
    func cancellation() async throws {
        let server = TokenServer(accepts: ["t2"])
        let cancelled = CountWatch()
        let tokens = AuthorizationRefresh.bearer(token: "t0", for: TokenServer.scope) { _ in
            server.refreshes.increment()
            guard server.refreshes.count == 1 else { return "t2" }
            do {
                try await server.gate.wait(for: 1)
            } catch {
                cancelled.increment()
                throw error
            }
            return "t1"
        }
        let pipeline = server.pipeline(tokens)
        let calls = (0..<2).map { _ in Task { try await pipeline.send(.get(TokenServer.url)) } }
        await until { tokens.waiterCount == 2 }
        calls[0].cancel()
        await #expect(throws: CancellationError.self) { try await calls[0].value }
        #expect(cancelled.count == 0)
        #expect(tokens.waiterCount == 1)
        calls[1].cancel()
        await #expect(throws: CancellationError.self) { try await calls[1].value }
        try await cancelled.wait(for: 1)
        #expect(try await pipeline.send(.get(TokenServer.url)).status == .ok)
        #expect(server.refreshes.count == 2)
    }

    @Test("A call that arrives while a cancelled refresh still runs gets its credential, or a refresh of its own")
    func joinsCancelled() async throws {
        for succeeds in [true, false] {
            let server = TokenServer(accepts: ["t1", "t2"])
            let tokens = AuthorizationRefresh.bearer(token: "t0", for: TokenServer.scope) { _ in
                server.refreshes.increment()
                guard server.refreshes.count == 1 else { return "t2" }
                // Deaf to cancellation, as a refresh may be.
                try await Task.detached { try await server.gate.wait(for: 1) }.value
                if !succeeds { throw CancellationError() }
                return "t1"
            }
            let transport = server.transport
            let pipeline = server.pipeline(tokens, transport)
            let first = Task { try await pipeline.send(.get(TokenServer.url)) }
            await until { tokens.waiterCount == 1 }
            first.cancel()
            await #expect(throws: CancellationError.self) { try await first.value }
            let second = Task { try await pipeline.send(.get(TokenServer.url)) }
            await until { tokens.waiterCount == 1 }
            server.gate.increment()
            #expect(try await second.value.status == .ok)
            #expect(transport.credentials.last == (succeeds ? "Bearer t1" : "Bearer t2"))
        }
    }

    @Test("Each waiter keeps its own deadline")
    func deadline() async throws {
        let server = TokenServer(accepts: ["t1"])
        let clock = ManualClock()
        let tokens = server.tokens(waitsAtGate: true)
        let pipeline = server.pipeline(tokens, clock: clock)
        var options = CallOptions()
        options.timeout = .seconds(3)
        let hurried = Task { [options] in try await pipeline.send(.get(TokenServer.url), options: options) }
        let patient = Task { try await pipeline.send(.get(TokenServer.url)) }
        await until { tokens.waiterCount == 2 && clock.sleeperCount == 2 }
        clock.advance(by: .seconds(3))
        do {
            _ = try await hurried.value
            Issue.record("the call should fail")
        } catch let error as ServiceError {
            #expect(error.code == .deadlineExceeded)
            #expect(error.response?.status == .unauthorized)
        }
        server.gate.increment()
        #expect(try await patient.value.status == .ok)
        #expect(server.refreshes.count == 1)
        await until { clock.sleeperCount == 0 }
    }

    @Test("Alamofire #3928: the refresh may call through the same pipeline: it is exempt, and cannot wait for itself")
    func exempt() async throws {
        let server = TokenServer(accepts: ["fresh"])
        let own = CountWatch()
        let transport = ScriptedTransport { request in
            guard request.url?.path == "/token" else { return server.answer(request) }
            own.increment()
            return own.count == 1 ? .respond(401) : .respond(200, body: "fresh")
        }
        let box = PipelineBox()
        let tokens = AuthorizationRefresh.bearer(token: "t0", for: TokenServer.scope) { _ in
            let refused = try await box.pipeline.send(.get("https://api.example/token"))
            #expect(refused.status == .unauthorized)
            return try await box.pipeline.send(.get("https://api.example/token")).read
        }
        box.pipeline = server.pipeline(tokens, transport)
        #expect(try await box.pipeline.send(.get(TokenServer.url)).status == .ok)
        #expect(transport.credentials == ["Bearer t0", nil, nil, "Bearer fresh"])
    }

    @Test("A refresh through the same pipeline is not blocked by the 401s that wait for it")
    func refreshThroughLimit() async throws {
        let server = TokenServer(accepts: [])
        let limited = ConcurrencyLimit(
            ScriptedTransport { request in
                if request.url?.path == "/token" { return .respond(200, body: "t1") }
                return request.value(forHTTPHeaderField: "Authorization") == "Bearer t1"
                    ? .respond(200, body: "t1") : .stream(401, chunks: ["not", "this"])
            },
            maxInFlight: 2
        )
        let box = PipelineBox()
        let authorization = AuthorizationRefresh.bearer(token: "t0", for: TokenServer.scope) { _ in
            let response = try await box.pipeline.send(.get("https://api.example/token"))
            return try await response.read
        }
        let pipeline = server.pipeline(authorization, limited)
        box.pipeline = pipeline
        let bodies = try await withThrowingTaskGroup(of: String.self) { group in
            for index in 0..<8 {
                group.addTask { try await pipeline.send(.get("\(TokenServer.url)/\(index)")).read }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(bodies == Array(repeating: "t1", count: 8))
    }

    @Test("One resource that always refuses, among others that accept, causes few refreshes")
    func oneRefusesAlways() async throws {
        let server = TokenServer(accepts: Set((0...100).map { "t\($0)" }))
        let transport = ScriptedTransport { request in
            request.url?.path == "/bad" ? .respond(401) : server.answer(request)
        }
        let clock = ManualClock()
        let pipeline = server.pipeline(server.tokens(), transport, clock: clock)
        for _ in 0..<100 {
            #expect(try await pipeline.send(.get("https://api.example/bad?x=1")).status == .unauthorized)
            #expect(try await pipeline.send(.get(TokenServer.url)).status == .ok)
            clock.advance(by: .seconds(1))
        }
        // After 0, 10, 30 and 70 s.
        #expect(server.refreshes.count == 4)
    }

    @Test("Many resources that always refuse share an allowance of refreshes")
    func manyRefuseAlways() async throws {
        let server = TokenServer(accepts: Set((0...100).map { "t\($0)" }))
        let transport = ScriptedTransport { request in
            request.url?.path.hasPrefix("/bad") == true ? .respond(401) : server.answer(request)
        }
        let clock = ManualClock()
        let pipeline = server.pipeline(server.tokens(), transport, clock: clock)
        for index in 0..<100 {
            #expect(try await pipeline.send(.get("https://api.example/bad/\(index)")).status == .unauthorized)
            #expect(try await pipeline.send(.get(TokenServer.url)).status == .ok)
            clock.advance(by: .seconds(1))
        }
        // Five at once, and one more each 10 s.
        #expect((13...15).contains(server.refreshes.count))
    }

    @Test("A refresh that hangs ends after its own timeout, and a later result is used")
    func hangingRefresh() async throws {
        let server = TokenServer(accepts: ["t1"])
        let clock = ManualClock()
        let gate = CountWatch()
        let authorization = AuthorizationRefresh(
            credential: "t0",
            for: TokenServer.scope,
            refreshTimeout: .seconds(5),
            apply: { $1.setValue("Bearer \($0)", forHTTPHeaderField: "Authorization") },
            refresh: { _ in
                server.refreshes.increment()
                // Heeds no cancellation.
                await Task { try? await gate.wait(for: 1) }.value
                return "t1"
            }
        )
        let pipeline = server.pipeline(authorization, clock: clock) { $0.callTimeout = nil }
        let call = Task { try await pipeline.send(.get(TokenServer.url)) }
        try await server.refreshes.wait(for: 1)
        await until { clock.sleeperCount >= 1 }
        clock.advance(by: .seconds(5))
        do {
            _ = try await call.value
            Issue.record("the refresh hangs")
        } catch let error as ServiceError {
            #expect(error.code == .authorizationFailed)
            #expect((error.cause as? ServiceError)?.code == .timeout)
            #expect(error.response?.status == .unauthorized)
        }
        gate.increment()
        while authorization.current.version == 1 { await Task.yield() }
        #expect(try await pipeline.send(.get(TokenServer.url)).read == "Bearer t1")
    }

    @Test("A late credential is used although another refresh has begun, and serves those who wait for that")
    func lateBesideAnother() async throws {
        func issued(_ token: String) -> IssuedCredential {
            IssuedCredential(token, apply: { _, _ in }, expiresAt: { _ in nil }, refresh: { _ in "next" })
        }
        var state = RefreshState(issued("t0"), retryPause: .zero)
        let now = ManualClock().now
        func perform(_ actions: [RefreshState.Action]) {
            for case .resume(let waiting, let result) in actions { waiting.resume(with: result) }
        }
        let first = state.enroll()
        _ = try? await withCheckedThrowingContinuation { (continuation: RefreshState.Continuation) in
            _ = state.join(first, newerThan: 1, continuation: continuation, now: now)
            perform(state.giveUp(1, for: CancellationError(), now: now))
        }
        let second = state.enroll()
        let served = try? await withCheckedThrowingContinuation { (continuation: RefreshState.Continuation) in
            _ = state.join(second, newerThan: 1, continuation: continuation, now: now)
            perform(state.finish(1, result: .success(issued("t1")), now: now))
            // Ends the wait where the late credential was dropped.
            perform(state.finish(2, result: .failure(RefreshFailure(cause: CancellationError())), now: now))
        }
        #expect(served?.version == 2)
        #expect(state.current.version == 2)
    }
}
