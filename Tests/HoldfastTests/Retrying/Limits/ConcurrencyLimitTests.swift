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

@Suite("ConcurrencyLimit", .timeLimit(.minutes(20)))
struct ConcurrencyLimitTests {
    let clock = ManualClock()
    let transport = ScriptedTransport([.stream(chunks: ["ab", "cd"])], repeatsLastStep: true)

    private func send(_ limit: ConcurrencyLimit, _ path: String = "/a", deadline: Duration? = nil) async throws
        -> Response
    {
        let context = CallContext(clock: clock, deadline: deadline.map(MonotonicInstant.init(sinceOrigin:)))
        return try await limit.send(.get("http://origin.example\(path)"), body: .none, context: context)
    }

    /// The error of a send that is expected to fail.
    private func failure(_ limit: ConcurrencyLimit, deadline: Duration? = nil) async throws -> ServiceError {
        do {
            _ = try await send(limit, deadline: deadline)
        } catch let error as ServiceError {
            return error
        }
        throw ServiceError(.other, "an error was expected")
    }

    @Test("A slot is held until the body ends, and waiting requests are sent in order")
    func order() async throws {
        let limit = ConcurrencyLimit(transport, maxInFlight: 1)
        var first: Response? = try await send(limit)
        var waiting: [Task<Response, any Error>] = []
        for index in 1...3 {
            waiting.append(Task { try await send(limit, "/\(index)") })
            while limit.waitingCount < index { await Task.yield() }
        }
        #expect(transport.sent.count == 1)
        #expect(try await first?.body.collect().array == Array("abcd".utf8))
        first = nil
        for task in waiting { _ = try await task.value.body.collect() }
        #expect(transport.sent.map { $0.request.url?.path } == ["/a", "/1", "/2", "/3"])
    }

    @Test(
        "A body that is dropped, discarded or cancelled unread frees its slot",
        arguments: ["dropped", "discarded"]
    )
    func unread(how: String) async throws {
        let limit = ConcurrencyLimit(transport, maxInFlight: 1, maxWaiting: 0)
        var response: Response? = try await send(limit)
        #expect(try await failure(limit).code == .tooManyInFlight)
        if how == "discarded" { response?.body.discard() }
        if how == "dropped" { response = nil }
        _ = try await send(limit)
        #expect(transport.sent.count == 2)
        _ = response
    }

    @Test("A failure, a broken body, and a body in memory free the slot at once")
    func atOnce() async throws {
        let broken = ServiceError(.connectionLost, "scripted", progress: .bytesReceived)
        let transport = ScriptedTransport(
            [.fail(progress: .headSent), .stream(chunks: ["ab"], failure: broken), .respond(body: "ab"), .respond()]
        )
        let limit = ConcurrencyLimit(transport, maxInFlight: 1, maxWaiting: 0)
        #expect(try await failure(limit).code == .connectionLost)
        let response = try await send(limit)
        await #expect(throws: ServiceError.self) { _ = try await response.body.collect() }
        let kept = try await send(limit)
        _ = try await send(limit)
        #expect(kept.body.length == 2)
    }

    @Test("Beyond the queue limit it fails at once, says what to do, and nothing is sent")
    func full() async throws {
        let limit = ConcurrencyLimit(transport, maxInFlight: 1, maxWaiting: 1)
        let first = try await send(limit)
        let second = Task { try await send(limit) }
        while limit.waitingCount < 1 { await Task.yield() }
        let error = try await failure(limit)
        #expect(error.code == .tooManyInFlight)
        #expect(error.progress == .notSent)
        #expect(error.message.contains("http://origin.example"))
        #expect(transport.sent.count == 1)
        first.body.discard()
        _ = try await second.value
    }

    @Test("Waiting ends at the attempt's deadline: too many in flight, which is not a server failure")
    func deadline() async throws {
        let limit = ConcurrencyLimit(transport, maxInFlight: 1)
        let first = try await send(limit)
        let second = Task { try await failure(limit, deadline: .seconds(3)) }
        try await clock.waitForSleeps(1)
        clock.advance(by: .seconds(3))
        let error = try await second.value
        #expect(error.code == .tooManyInFlight)
        #expect(error.progress == .notSent)
        #expect(error.message.contains("too long"))
        #expect(limit.waitingCount == 0)
        first.body.discard()
        _ = try await send(limit)
    }

    @Test("A request cancelled from outside at the deadline has waited too long; a circuit around it stays closed")
    func congestion() async throws {
        var rules = CircuitRules()
        rules.minimumAttempts = 1
        let limit = ConcurrencyLimit(transport, maxInFlight: 1)
        let breaker = CircuitBreaker(limit, rules: rules)
        let first = try await send(limit)
        for cancels in [false, true] {
            let deadline = clock.now.advanced(by: .seconds(3))
            let context = CallContext(clock: clock, deadline: deadline)
            let origin = "http://origin.example/b"
            let second = Task { try await breaker.send(.get(origin), body: .none, context: context) }
            while limit.waitingCount < 1 { await Task.yield() }
            clock.advance(by: .seconds(3))
            if cancels { second.cancel() }
            let result = await second.result
            #expect(throws: ServiceError.self) { try result.get() }
            if case .failure(let error as ServiceError) = result { #expect(error.code == .tooManyInFlight) }
        }
        first.body.discard()
        let context = CallContext(clock: clock)
        #expect(try await breaker.send(.get(), body: .none, context: context).status == .ok)
    }

    @Test("E10: waiting ends promptly on cancellation, and leaves no timer and no slot behind")
    func cancellation() async throws {
        let limit = ConcurrencyLimit(transport, maxInFlight: 1)
        let first = try await send(limit)
        let second = Task { try await send(limit, deadline: .seconds(30)) }
        try await clock.waitForSleeps(1)
        second.cancel()
        await #expect(throws: CancellationError.self) { _ = try await second.value }
        while clock.sleeperCount > 0 { await Task.yield() }
        first.body.discard()
        _ = try await send(limit)
        #expect(transport.sent.count == 2)
    }

    @Test("Each origin has its own slots")
    func perOrigin() async throws {
        let limit = ConcurrencyLimit(transport, maxInFlight: 1, maxWaiting: 0)
        let first = try await send(limit)
        let context = CallContext(clock: clock)
        _ = try await limit.send(.get("http://other.example/"), body: .none, context: context)
        #expect(transport.sent.count == 2)
        first.body.discard()
    }

    @Test("With many tasks, some cancelled: never more in flight than allowed, and all slots are freed")
    func stress() async throws {
        let gauge = Gauge()
        let transport = ScriptedTransport { _ in
            gauge.enter()
            await Task.yield()
            gauge.leave()
            return .stream(chunks: ["ab"])
        }
        let limit = ConcurrencyLimit(transport, maxInFlight: 4)
        await withTaskGroup(of: Void.self) { group in
            for worker in 0..<100 {
                group.addTask {
                    let task = Task { _ = try await send(limit).body.collect() }
                    if worker % 3 == 0 { task.cancel() }
                    _ = try? await task.value
                }
            }
        }
        #expect(gauge.highest <= 4)
        let last = try await send(limit)
        last.body.discard()
    }
}

extension ConcurrencyLimit {
    /// How many wait for the origin of these tests.
    fileprivate var waitingCount: Int {
        line(of: OriginText(.get("http://origin.example/")), now: MonotonicInstant(sinceOrigin: .zero)).counts
            .waiting
    }
}
