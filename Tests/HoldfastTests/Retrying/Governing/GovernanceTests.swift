// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastSemantics
import HoldfastTesting
import Synchronization
import Testing

@testable import Holdfast

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// What holds for every retrier, no matter who made it: what may be sent twice, how often, and out of whose budget.
@Suite("Rules that apply to every retrier", .timeLimit(.minutes(20)))
struct GovernanceTests {
    /// Sends again whatever happened, at once.
    private struct Insistent: Retrier {
        var allowsMultipleRetries: Bool { true }
        func retry(_ request: URLRequest, after attempt: FailedAttempt, context: CallContext) async -> RetryDecision {
            .retryNow
        }
    }

    /// Writes down what it is told, and sends again once.
    private final class Listening: Retrier {
        let classes = Mutex<[RetryClass]>([])

        func retry(_ request: URLRequest, after attempt: FailedAttempt, context: CallContext) async -> RetryDecision {
            classes.withLock { $0.append(attempt.classification) }
            return .retryNow
        }
    }

    private static let insistent = AnyRetrierFactory { _ in Insistent() }

    private func pipeline(
        _ transport: any Transport,
        _ factory: any RetrierFactory,
        clock: any HoldfastClock = ManualClock(autoAdvances: true)
    ) -> Pipeline {
        var configuration = PipelineConfiguration()
        configuration.clock = clock
        return Pipeline(transport: transport, retrierFactory: factory, configuration: configuration)
    }

    /// A failure, a method, and whether a retrier of one's own has it sent again.
    struct Resend: Sendable, CustomStringConvertible {
        let failure: ScriptedTransport.Step
        let name: String
        let method: String
        var isIdempotent: Bool?
        var key: String?
        var isGateway = false
        let isSent: Bool
        var description: String {
            "\(method) after \(name)\(isIdempotent.map { ", declared \($0)" } ?? "")\(key == nil ? "" : ", with a key")"
                + "\(isGateway ? ", by a gateway" : "")"
        }
    }

    private static let lost = ScriptedTransport.Step.fail(.connectionLost, progress: .bodySent)
    private static let refused = ScriptedTransport.Step.fail(.connect, progress: .notSent)

    @Test(
        "RFC 9110 §9.2.2: a request the server may have acted on is resent only if harmless, whatever a retrier says",
        arguments: [
            Resend(failure: .respond(500), name: "500", method: "POST", isSent: false),
            Resend(failure: .respond(503), name: "503", method: "PATCH", isSent: false),
            Resend(failure: lost, name: "a lost connection", method: "POST", isSent: false),
            Resend(failure: .respond(500), name: "500", method: "POST", isIdempotent: true, isSent: true),
            Resend(failure: .respond(500), name: "500", method: "POST", key: "\"k\"", isSent: true),
            Resend(failure: .respond(500), name: "500", method: "PUT", isSent: true),
            Resend(failure: .respond(500), name: "500", method: "PUT", isIdempotent: false, isSent: false),
            Resend(failure: refused, name: "a refused connection", method: "POST", isSent: true),
            Resend(failure: .respond(429), name: "429", method: "POST", isSent: true),
            Resend(failure: .respond(401), name: "401", method: "POST", isSent: true),
            Resend(failure: .respond(404), name: "404", method: "POST", isSent: true),
            Resend(
                failure: .respond(500),
                name: "500",
                method: "POST",
                isIdempotent: true,
                isGateway: true,
                isSent: false
            ),
            Resend(failure: .respond(429), name: "429", method: "POST", isGateway: true, isSent: false),
            Resend(failure: .respond(404), name: "404", method: "POST", isGateway: true, isSent: false),
            Resend(failure: refused, name: "a refused connection", method: "POST", isGateway: true, isSent: true),
            Resend(failure: .respond(500), name: "500", method: "GET", isGateway: true, isSent: true),
        ]
    )
    func resends(_ each: Resend) async throws {
        let transport = ScriptedTransport([each.failure, .respond(200)])
        let own: any RetrierFactory = each.isGateway ? .gateway : Self.insistent
        let pipeline = pipeline(transport, own)
        var options = CallOptions()
        options.isIdempotent = each.isIdempotent
        if each.isGateway { options.retrierFactory = Self.insistent }
        var request = URLRequest.request(each.method, "http://origin.example/")
        if let key = each.key { request.setValue(key, forHTTPHeaderField: "Idempotency-Key") }
        let response = try? await pipeline.send(request, options: options)
        #expect(transport.sent.count == (each.isSent ? 2 : 1))
        if !each.isSent, let response { #expect(response.attempts.last?.stopReason == .notIdempotent) }
    }

    @Test("RFC 9110 §9.2.2: a gateway stays one under a call's own rules, declared idempotent or not")
    func gatewayRules() async throws {
        let transport = ScriptedTransport([.respond(500)], repeatsLastStep: true)
        let pipeline = pipeline(transport, BackoffRetrier.Factory.gateway)
        var options = CallOptions()
        options.retryRules = .default
        options.isIdempotent = true
        let response = try await pipeline.send(.request("POST", "http://origin.example/"), options: options)
        #expect(transport.sent.count == 1)
        #expect(response.attempts.last?.stopReason == .notIdempotent)
    }

    @Test("A call's own rules leave the factory's condition and the other members of a chain in force")
    func conditionStays() async throws {
        var options = CallOptions()
        options.retryRules = RetryRules(maxAttempts: 3)
        let declined = BackoffRetrier.factory(retryCondition: { $0.response?.status != .badGateway })
        let first = ScriptedTransport([.respond(502)], repeatsLastStep: true)
        _ = try await pipeline(first, declined).send(.get(), options: options)
        #expect(first.sent.count == 1)
        let refresh = AnyRetrierFactory { _ in
            Once { $0.response?.status == .unauthorized ? .retryNow : .stop(.notRetryable) }
        }
        let second = ScriptedTransport([.respond(401)] + Array(repeating: .respond(503), count: 5))
        let response = try await pipeline(second, .chain(refresh, declined)).send(.get(), options: options)
        #expect(response.status == .serviceUnavailable && second.sent.count == 1 + 3)
    }

    private struct Once: Retrier {
        let answer: @Sendable (FailedAttempt) -> RetryDecision

        func retry(_ request: URLRequest, after attempt: FailedAttempt, context: CallContext) async -> RetryDecision {
            answer(attempt)
        }
    }

    @Test("A retrier that never gives up is stopped after a hundred sends, or by the rules of its factory's governor")
    func ceiling() async throws {
        let endless = ScriptedTransport([.respond(500)], repeatsLastStep: true)
        let response = try await pipeline(endless, Self.insistent).send(.get())
        #expect(endless.sent.count == 100)
        #expect(response.attempts.last?.stopReason == .attemptsExhausted)
        var rules = RetryRules(maxAttempts: 3)
        rules.budget = .unlimited
        let governed = AnyRetrierFactory(governor: RetryGovernor(rules)) { _ in Insistent() }
        let bounded = ScriptedTransport([.respond(500)], repeatsLastStep: true)
        _ = try await pipeline(bounded, governed).send(.get())
        #expect(bounded.sent.count == 8)
    }

    @Test("A custom factory with a governor uses the governor's budget")
    func ownGovernor() async throws {
        let transport = ScriptedTransport([.respond(500)], repeatsLastStep: true)
        let governor = RetryGovernor(.default)
        let factory = AnyRetrierFactory(governor: governor) { _ in Insistent() }
        let clock = ManualClock(autoAdvances: true)
        let pipeline = pipeline(transport, factory, clock: clock)
        for _ in 0..<20 { _ = try await pipeline.send(.get()) }
        // Three tokens, and what a few seconds of waiting refill.
        #expect(transport.sent.count < 30)
        let url = try #require(URL(string: "http://origin.example/a"))
        #expect((governor.status(of: url, now: clock.now)?.counts.stops[.budget] ?? 0) > 10)
    }

    @Test("A retrier learns what the failure proves, by the rules of the call")
    func classification() async throws {
        let listening = Listening()
        let factory = AnyRetrierFactory { _ in listening }
        for step in [ScriptedTransport.Step.respond(500), .respond(429), Self.refused, .respond(404)] {
            _ = try await pipeline(ScriptedTransport([step, .respond(200)]), factory).send(.get())
        }
        _ = try await pipeline(ScriptedTransport([.respond(500), .respond(200)]), factory)
            .send(.request("POST", "http://origin.example/"))
        let expected: [RetryClass] = [
            .ambiguous, .throttled, .unprocessed, .never(.notRetryable), .never(.notIdempotent),
        ]
        #expect(listening.classes.withLock { $0 } == expected)
    }

    @Test("A budget in a call's options applies to all calls that have it, beside the factory's own")
    func budgetOfCalls() async throws {
        var options = CallOptions()
        options.retryRules = RetryRules()
        options.retryRules?.budget = .unlimited
        let free = ScriptedTransport([.respond(500)], repeatsLastStep: true)
        let pool = pipeline(free, BackoffRetrierTests.seeded())
        for _ in 0..<20 { _ = try await pool.send(.get(), options: options) }
        #expect(free.sent.count == 80)

        var strict = RetryRules()
        strict.budget = .unlimited
        let bounded = ScriptedTransport([.respond(500)], repeatsLastStep: true)
        let unlimited = pipeline(bounded, BackoffRetrierTests.seeded(strict))
        options.retryRules?.budget = .pool
        for _ in 0..<20 { _ = try await unlimited.send(.get(), options: options) }
        #expect(bounded.sent.count < 40)
        let before = bounded.sent.count
        _ = try await unlimited.send(.get())
        #expect(bounded.sent.count == before + 4)
    }

    @Test("Budgets beyond the number kept for an origin use the factory's")
    func manyBudgets() {
        let account = RetryGovernor(.default).account(for: .get(), now: MonotonicInstant(sinceOrigin: .zero))
        let now = MonotonicInstant(sinceOrigin: .zero)
        for count in 0..<1_000 {
            let budget = RetryBudget.grpc(maxTokens: 10 + count)
            _ = account.traffic(under: budget, isBackground: count % 2 == 0, now: now)
        }
        #expect(account.budgetCount == 2 * 9)
    }

    @Test("A chain has one budget, that of its first member with a governor, and it pays for all members")
    func chainBudget() async throws {
        let transport = ScriptedTransport([.respond(500)], repeatsLastStep: true)
        var unlimited = RetryRules()
        unlimited.budget = .unlimited
        let chain = ChainRetrier.factory([
            BackoffRetrier.factory(retryCondition: { _ in false }), BackoffRetrierTests.seeded(unlimited),
        ])
        let pipeline = pipeline(transport, chain)
        for _ in 0..<20 { _ = try await pipeline.send(.get()) }
        #expect(transport.sent.count < 40)
    }

    @Test("Infinite durations are valid", arguments: [Duration.seconds(Int64.max), .seconds(Int64.max / 2)])
    func endless(_ time: Duration) async throws {
        var rules = RetryRules(backoff: Backoff(base: .zero, cap: time), maxServerDelay: time)
        rules.throttlingBackoff = Backoff(base: .zero, cap: time)
        rules.maxParking = time
        rules.callTimeout = time
        rules.attemptTimeout = time
        rules.parks = true
        for rules in [
            rules,
            {
                var rules = rules; rules.budget = .patientPool; return rules
            }(),
        ] {
            var configuration = PipelineConfiguration()
            configuration.callTimeout = time
            let transport = ScriptedTransport([
                .respond(503), .respond(500), .respond(503, ["Retry-After": "0"]), .respond(200),
            ])
            let pipeline = Pipeline(
                transport: transport,
                retrierFactory: .backoff(rules),
                configuration: configuration
            )
            var options = CallOptions()
            options.timeout = time
            #expect(try await pipeline.send(.get(), options: options).status == .ok)
        }
    }

    @Test("Other requests of the program during an attempt say nothing about the attempt")
    func sideCall() async throws {
        // A clock that jumps would let the outer attempt time out beside the side call's waits.
        let clock = SystemClock()
        let side = pipeline(
            ScriptedTransport([.respond(503)], repeatsLastStep: true),
            BackoffRetrierTests.seeded(RetryRules(maxAttempts: 2)),
            clock: clock
        )
        let scripted = ScriptedTransport([.respond(500), .respond(200)])
        let outer = pipeline(SideCalling(next: scripted, side: side), BackoffRetrierTests.seeded(), clock: clock)
        #expect(try await outer.send(.get("http://origin.example/page")).status == .ok)
        #expect(scripted.sent.count == 2)
    }

    /// A transport that fetches something else through a pipeline before it sends.
    private struct SideCalling: Transport {
        let next: ScriptedTransport
        let side: Pipeline

        func send(_ request: URLRequest, body: RequestBody, context: CallContext) async throws -> Response {
            let response = try await side.send(.get("http://tokens.example/"))
            response.body.discard()
            return try await next.send(request, body: body, context: context)
        }
    }

    @Test("backoff(base:cap:attempts:retry:methods:): the common policy in one line")
    func common() async throws {
        let factory = BackoffRetrier.Factory.backoff(
            base: .milliseconds(50),
            cap: .seconds(1),
            attempts: 3,
            retry: [500, 404],
            methods: [.get, .post]
        )
        for (method, status, sends) in [
            ("GET", 500, 3), ("POST", 404, 3), ("PUT", 500, 1), ("GET", 503, 1), ("GET", 429, 1), ("POST", 500, 3),
        ] {
            let transport = ScriptedTransport([.respond(status)], repeatsLastStep: true)
            let clock = ManualClock(autoAdvances: true)
            _ = try await pipeline(transport, factory, clock: clock)
                .send(.request(method, "http://\(method)\(status).example/"))
            #expect(transport.sent.count == sends, "\(method) \(status)")
            #expect(clock.waits.first ?? .zero <= .milliseconds(50))
        }
        #expect(BackoffRetrier.Factory.backoff().governor?.rules == .default)
    }

    // MARK: Ways around

    private static let neverSentAgain: [ScriptedTransport.Step] =
        [408, 500, 501, 502, 504, 505, 507, 508, 510, 520].map { .respond($0) }
        + [
            .fail(.bodyTooLarge, progress: .bytesReceived), .fail(.resourceUnavailable, progress: .headReceived),
            .fail(.other, progress: .bodySent),
        ]

    @Test("Which statuses the rules retry says nothing about what the server did", arguments: neverSentAgain)
    func finalStatuses(_ step: ScriptedTransport.Step) async throws {
        let factories: [any RetrierFactory] = [
            .chain(.backoff(retry: [429, 503]), Self.insistent), Self.insistent,
            AnyRetrierFactory(governor: BackoffRetrier.Factory.backoff(retry: [418]).governor) { _ in Insistent() },
        ]
        for factory in factories {
            let transport = ScriptedTransport([step], repeatsLastStep: true)
            _ = try? await pipeline(transport, factory).send(.request("POST", "http://origin.example/"))
            #expect(transport.sent.count == 1)
        }
    }

    @Test("If an acceptance fails because of its own call, the request it checks does not count as unsent")
    func decidedByCall() async throws {
        let other = pipeline(ScriptedTransport([.fail(.connect, progress: .notSent)], repeatsLastStep: true), .never)
        for factory in [.default, .strict, .gateway] as [BackoffRetrier.Factory] {
            let transport = ScriptedTransport([.respond(201)], repeatsLastStep: true)
            var options = CallOptions()
            var acceptance = Acceptance { _ in _ = try await other.send(.get()) }
            acceptance.checksAttempts = true
            options.acceptance = acceptance
            let pipeline = pipeline(transport, factory)
            let error = await #expect(throws: ServiceError.self) {
                try await pipeline.send(.request("POST", "http://origin.example/"), options: options)
            }
            #expect(transport.sent.count == 1 && error?.progress == .headReceived)
        }
    }

    @Test("The method that is sent counts, not the one before a prepare step", arguments: [false, true])
    func preparedMethod(byCall: Bool) async throws {
        let step: PrepareStep = { request, _ in request.httpMethod = "POST" }
        for factory in [.default, .gateway] as [BackoffRetrier.Factory] {
            let transport = ScriptedTransport([.respond(500)], repeatsLastStep: true)
            var configuration = PipelineConfiguration()
            configuration.clock = ManualClock(autoAdvances: true)
            var options = CallOptions()
            if byCall { options.prepare = [step] } else { configuration.prepare = [step] }
            let pipeline = Pipeline(transport: transport, retrierFactory: factory, configuration: configuration)
            _ = try await pipeline.send(.get(), options: options)
            #expect(transport.sent.count == 1)
        }
    }

    @Test(
        "A retry that meets its own kind of failure again costs the budget, whatever the status",
        arguments: [404, 423, 510]
    )
    func paidByStatus(_ status: Int) async throws {
        let factories: [any RetrierFactory] = [
            .backoff(retry: [StatusCode(status)]),
            AnyRetrierFactory(governor: RetryGovernor(.default)) { _ in Insistent() },
        ]
        for factory in factories {
            let transport = ScriptedTransport([.respond(status)], repeatsLastStep: true)
            let pipeline = pipeline(transport, factory)
            for _ in 0..<50 { _ = try await pipeline.send(.get()) }
            #expect(transport.sent.count < 80)
        }
    }

    @Test("RetryRules.never for a call means one send, also in a chain, and so does a governor with one attempt")
    func none() async throws {
        let chained = ScriptedTransport([.respond(500)], repeatsLastStep: true)
        var options = CallOptions()
        options.retryRules = RetryRules.never
        _ = try await pipeline(chained, .chain(Self.insistent, .default)).send(.get(), options: options)
        #expect(chained.sent.count == 1)
        let governed = ScriptedTransport([.respond(500)], repeatsLastStep: true)
        let factory = AnyRetrierFactory(governor: RetryGovernor(.never)) { _ in Insistent() }
        _ = try await pipeline(governed, factory).send(.get())
        #expect(governed.sent.count == 1)
    }

    @Test("cap is the longest wait after a 429 too")
    func throttledCap() async throws {
        let transport = ScriptedTransport([.respond(429)], repeatsLastStep: true)
        let clock = ManualClock(autoAdvances: true)
        let factory = BackoffRetrier.Factory.backoff(base: .milliseconds(10), cap: .milliseconds(50), attempts: 2)
        for number in 0..<50 {
            _ = try await pipeline(transport, factory, clock: clock).send(.get("http://h\(number).example/"))
        }
        #expect(!clock.waits.isEmpty && clock.waits.allSatisfy { $0 <= .milliseconds(50) })
    }

    @Test("A base above the usual cap raises the cap that was left out")
    func derivedCap() {
        let factory = BackoffRetrier.Factory.backoff(base: .seconds(30))
        #expect(factory.governor?.rules.backoff.cap == .seconds(30))
        #expect(factory.governor?.rules.throttlingBackoff.cap == .seconds(30))
        #expect(BackoffRetrier.Factory.backoff().governor?.rules.backoff == Backoff())
    }

    @Test("A 429 for one cookie closes nothing for another")
    func cookiesApart() async throws {
        let transport = ScriptedTransport { request in
            request.value(forHTTPHeaderField: "Cookie") == "sid=a"
                ? .respond(429, ["Retry-After": "30"]) : .respond(200)
        }
        let pipeline = pipeline(transport, .default)
        var options = CallOptions()
        options.timeout = .seconds(5)
        _ = try? await pipeline.send(.get("http://origin.example/me", ["Cookie": "sid=a"]), options: options)
        let answer = try await pipeline.send(.get("http://origin.example/me", ["Cookie": "sid=b"]), options: options)
        #expect(answer.status == .ok)
    }

    @Test("An unsafe request whose redirect leads nowhere counts as answered")
    func redirectedNowhere() async throws {
        let transport = ScriptedTransport([.respond(303, ["Location": "/b"]), .fail(.connect, progress: .notSent)])
        let pipeline = pipeline(transport, .never)
        let error = await #expect(throws: ServiceError.self) {
            try await pipeline.send(.request("POST", "http://origin.example/a"))
        }
        #expect(error?.code == .connect && error?.progress == .headReceived)
    }

    @Test("A custom status that renews credentials does not resend what may have been acted on")
    func renewedByServerError() async throws {
        let source = GatedSource([ByteChunk(copying: "why".utf8)])
        let transport = NumberedTransport { _, _ in .stream(500, HeaderFields(), source, nil) }
        var configuration = PipelineConfiguration()
        configuration.clock = ManualClock()
        configuration.authorization = AuthorizationRefresh(
            credential: "old",
            for: ["http://origin.example"],
            statuses: [401, 500],
            apply: { $1.setValue($0, forHTTPHeaderField: "Authorization") },
            refresh: { _ in "new" }
        )
        let pipeline = Pipeline(transport: transport, configuration: configuration)
        let response = try await pipeline.send(.request("POST", "http://origin.example/a"))
        #expect(response.status == .internalServerError && response.attempts.count == 1)
        source.open(2)
        #expect(try await response.body.collect().array == Array("why".utf8))
    }

    @Test("A request that was refused unprocessed is resent at once, and that is no attempt of the rules")
    func refusedUnprocessed() async throws {
        let clock = ManualClock()
        let refused = ScriptedTransport.Step.fail(.connectionLost, progress: .notSent)
        let transport = ScriptedTransport([refused, .respond(200)])
        var configuration = PipelineConfiguration()
        configuration.clock = clock
        var rules = RetryRules.default
        rules.maxAttempts = 2
        let pipeline = Pipeline(transport: transport, retrierFactory: .backoff(rules), configuration: configuration)
        let response = try await pipeline.send(.request("POST", "http://origin.example/a"))
        #expect(response.status == .ok && clock.waits.isEmpty)
        #expect(response.attempts.map(\.retryClass) == [.unprocessed, nil])
    }

    @Test("The error of a step is not taken for the gate of the origin, and reaches the caller")
    func stepIsThrottled() async throws {
        let transport = ScriptedTransport([.respond(503), .respond(200)])
        let events = EventRecorder()
        var configuration = PipelineConfiguration()
        configuration.clock = ManualClock(autoAdvances: true)
        configuration.observers = [events]
        configuration.prepare = [
            { _, context in
                guard context.attempt > 1 else { return }
                throw ServiceError(.throttled, "The token server asks for less load. Wait.", progress: .notSent)
            }
        ]
        let pipeline = Pipeline(transport: transport, retrierFactory: .default, configuration: configuration)
        let error = await #expect(throws: ServiceError.self) { try await pipeline.send(.get()) }
        #expect(error?.code == .throttled && error?.message.contains("token server") == true)
        #expect(error?.attempts.map(\.stopReason) == [nil])
        #expect(!events.events.contains { $0.stopReason == .gateClosed })
    }

    @Test("A call that ends at a gate after its credential was renewed says so")
    func gateAfterRenewal() async throws {
        let transport = ScriptedTransport([.respond(401), .respond(429, [.retryAfter: "50"])])
        var rules = RetryRules.default
        rules.maxAttempts = 1
        let factory = BackoffRetrier.Factory.backoff(rules)
        var configuration = PipelineConfiguration()
        configuration.clock = ManualClock()
        configuration.callTimeout = .milliseconds(100)
        let other = Pipeline(transport: transport, retrierFactory: factory, configuration: configuration)
        configuration.authorization = .bearer(token: "old", for: ["http://origin.example"]) { _ in
            // The same caller, as far as gates can tell.
            let closing = try await other.send(.get("http://origin.example/", ["Authorization": "Bearer old"]))
            return closing.status == .tooManyRequests ? "new" : "old"
        }
        let pipeline = Pipeline(transport: transport, retrierFactory: factory, configuration: configuration)
        let error = await #expect(throws: ServiceError.self) { try await pipeline.send(.get()) }
        #expect(error?.code == .throttled)
        #expect(error?.attempts.last?.stopReason == .gateClosed)
    }

    @Test(
        "However many calls are refused at once, one refresh serves all of them, also with a deadline",
        arguments: [nil, 10]
    )
    func refusedAtOnce(_ seconds: Int?) async throws {
        let refreshes = CountWatch()
        let transport = ScriptedTransport { request in
            .respond(request.value(forHTTPHeaderField: "Authorization") == "Bearer new" ? 200 : 401)
        }
        var configuration = PipelineConfiguration()
        configuration.callTimeout = seconds.map { .seconds($0) }
        configuration.authorization = .bearer(token: "old", for: ["http://origin.example"]) { _ in
            refreshes.increment()
            return "new"
        }
        let pipeline = Pipeline(transport: transport, configuration: configuration)
        try await withThrowingTaskGroup(of: StatusCode.self) { group in
            for number in 0..<50 {
                group.addTask { try await pipeline.send(.get("http://origin.example/\(number)")).status }
            }
            for try await status in group { #expect(status == .ok) }
        }
        #expect(refreshes.count == 1)
    }
}
