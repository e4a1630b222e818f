// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastServices
import HoldfastTesting
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("Time limits of typed calls", .timeLimit(.minutes(20)))
struct DeadlineTests {
    private let clock = ManualClock()
    private let log = CallFixtures.Log()

    private func request(_ timeout: Duration? = .seconds(5)) -> AnyRequest<String> {
        var request = CallFixtures.text()
        request.timeout = timeout
        return request
    }

    private func service() -> AnyHttpService {
        CallFixtures.service(log, hooks: [CallFixtures.NotingHook(name: "a", log: log)])
    }

    /// Moves the clock on and says how the call ends; anyone who looks at it later finds that its time has come.
    private func outcome(_ call: Task<String, any Error>, after duration: Duration) async -> ServiceError? {
        clock.advance(by: duration)
        return await #expect(throws: ServiceError.self) { try await call.value }
    }

    @Test("A header that never comes is waited for only as long as the call may take")
    func building() async throws {
        let (reached, never) = (CountWatch(), CountWatch())
        var service = service()
        service.makeHeader = {
            reached.increment()
            try await never.wait(for: 1)
            return [:]
        }
        let transport = ScriptedTransport([])
        let client = CallFixtures.client(service, transport, clock: clock)
        let call = Task { try await request().schedule(with: client) as String }
        try await reached.wait(for: 1)
        let error = await outcome(call, after: .seconds(5))
        #expect(error?.code == .deadlineExceeded)
        #expect(error?.progress == .notSent)
        #expect(transport.sent.isEmpty)
        #expect(log.entries == ["a.failure(deadline-exceeded)", "process(deadline-exceeded)"])
    }

    @Test("A response that never comes ends the call when its time is over")
    func sending() async throws {
        let transport = ScriptedTransport([.silence])
        let client = CallFixtures.client(service(), transport, clock: clock)
        let call = Task { try await request().schedule(with: client) as String }
        try await transport.waitForSends(1)
        let error = await outcome(call, after: .seconds(5))
        #expect(error?.code == .deadlineExceeded || error?.code == .timeout)
        #expect(log.entries.count == 3)
    }

    @Test("Content that never ends is given up when the call's time is over")
    func content() async throws {
        let reached = CountWatch()
        let content = EndlessContent(reached: reached)
        let transport = AnsweringTransport { content.response }
        let client = CallFixtures.client(service(), transport, clock: clock)
        let call = Task { try await request().schedule(with: client) as String }
        try await reached.wait(for: 2)
        let error = await outcome(call, after: .seconds(5))
        #expect(error?.code == .deadlineExceeded)
        #expect(error?.progress == .headReceived)
        #expect(error?.response?.status == .ok)
        try await content.waitForCancel()
        #expect(log.entries == ["a.schedule", "a.failure(deadline-exceeded)", "process(deadline-exceeded)"])
    }

    @Test("No wait is started that cannot end in time")
    func backoff() async throws {
        let clock = ManualClock()
        let transport = ScriptedTransport([.respond(429), .respond(429), .respond(429), .respond(200)])
        var service = service()
        service.retrierFactory = .exponentialBinary()
        let client = CallFixtures.client(service, transport, clock: clock)
        let call = Task { try await request(.seconds(3)).schedule(with: client) }
        while !clock.waits.contains(.seconds(1)) { await Task.yield() }
        clock.advance(by: .seconds(1))
        let error = await #expect(throws: ServiceError.self) { try await call.value }
        #expect(error?.response?.status == .tooManyRequests)
        #expect(clock.now.sinceOrigin == .seconds(1))
        #expect(transport.sent.count == 2)
    }

    @Test(
        "The shortest applicable time limit counts",
        arguments: [(5, 1, 1), (1, 5, 1), (nil, 2, 2)] as [(Int?, Int, Int)]
    )
    func shortest(_ own: Int?, _ option: Int, _ expected: Int) async throws {
        let transport = ScriptedTransport([.silence])
        let client = CallFixtures.client(service(), transport, clock: clock)
        var request = request(own.map { .seconds($0) })
        request.options.timeout = .seconds(option)
        let call = Task { [request] in try await request.schedule(with: client) }
        try await transport.waitForSends(1)
        _ = await outcome(call, after: .seconds(expected))
    }

    @Test("A result that is there at once needs no race, whatever the clock does")
    func noRace() async throws {
        let transport = ScriptedTransport([.respond(200, body: "ok")])
        let client = CallFixtures.client(service(), transport, clock: clock)
        #expect(try await request().schedule(with: client) == "ok")
    }

    @Test("The shortest limit counts for the content, too", arguments: [(5, nil), (nil, 5)] as [(Int?, Int?)])
    func shortestForContent(_ option: Int?, _ pipeline: Int?) async throws {
        let reached = CountWatch()
        let content = EndlessContent(reached: reached)
        var service = service()
        service.pipelineConfiguration.callTimeout = pipeline.map { .seconds($0) }
        let client = CallFixtures.client(service, AnsweringTransport { content.response }, clock: clock)
        var request = request(.seconds(60))
        request.options.timeout = option.map { .seconds($0) }
        let call = Task { [request] in try await request.schedule(with: client) as String }
        try await reached.wait(for: 2)
        let error = await outcome(call, after: .seconds(5))
        #expect(error?.code == .deadlineExceeded)
        #expect(error?.message.contains("5.0 seconds") == true, "\(error?.message ?? "")")
    }

    @Test("A header that never comes for a retry is waited for only as long as the call may take")
    func renewing() async throws {
        let (asked, late) = (CountWatch(), CountWatch())
        var service = service()
        service.retrierFactory = AnyRetrierFactory { _ in
            CallFixtures.ClosureRetrier(allowsMultipleRetries: false) { _ in .retryNow }
        }
        service.makeHeader = {
            asked.increment()
            if asked.count > 1 { try await late.wait(for: 1) }
            return [:]
        }
        let transport = ScriptedTransport([.respond(503), .respond(200, body: "late")])
        let client = CallFixtures.client(service, transport, clock: clock)
        let call = Task { try await request().schedule(with: client) as String }
        try await asked.wait(for: 2)
        let error = await outcome(call, after: .seconds(5))
        late.increment()
        #expect(error?.code == .deadlineExceeded)
        #expect(transport.sent.count == 1)
    }
}
