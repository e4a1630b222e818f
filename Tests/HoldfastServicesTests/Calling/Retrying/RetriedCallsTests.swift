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

private typealias ClosureRetrier = CallFixtures.ClosureRetrier

@Suite("Typed calls that are retried", .timeLimit(.minutes(20)))
struct RetriedCallsTests {
    private let log = CallFixtures.Log()

    private func client(
        _ transport: ScriptedTransport,
        _ factory: any RetrierFactory,
        clock: ManualClock = ManualClock(autoAdvances: true)
    ) -> ServiceClient<AnyHttpService> {
        var service = CallFixtures.service(log, hooks: [CallFixtures.NotingHook(name: "a", log: log)])
        service.retrierFactory = factory
        return CallFixtures.client(service, transport, clock: clock)
    }

    private static func retrying(_ decisions: [Bool], multiple: Bool = true) -> AnyRetrierFactory {
        AnyRetrierFactory { _ in
            let left = CallFixtures.Log()
            return ClosureRetrier(allowsMultipleRetries: multiple) { _ in
                left.note("asked")
                let index = left.entries.count - 1
                return index < decisions.count && decisions[index] ? .retryNow : .stop(.retrierDeclined)
            }
        }
    }

    @Test("S-T14: fail, fail, succeed: 3 sends, one schedule, one success, no failure")
    func succeedsAtLast() async throws {
        let transport = ScriptedTransport([.respond(503), .fail(progress: .bodySent), .respond(200, body: "ok")])
        let answer = try await client(transport, Self.retrying([true, true])).response(to: CallFixtures.text())
        #expect(answer.value == "ok")
        #expect(answer.response.attempts.count == 3)
        #expect(transport.sent.count == 3)
        #expect(log.entries == ["a.schedule", "a.success(ok, network(attempts: 3))"])
    }

    @Test("An Idempotency-Key names the operation, so all attempts of a call send the same one, however it is made")
    func idempotencyKey() async throws {
        let transport = ScriptedTransport([.fail(.connectionLost, progress: .headSent), .respond(200, body: "ok")])
        struct Payment: Request {
            typealias Result = String
            let made = CountWatch()
            var method: HttpMethod { .post }
            var header: HttpHeader {
                made.increment()
                return ["Idempotency-Key": "\"\(made.count)\"", "X-Number": "\(made.count)"]
            }
        }
        _ = try await client(transport, Self.retrying([true])).response(to: Payment())
        #expect(transport.sent.map { $0.request.value(forHTTPHeaderField: "Idempotency-Key") } == ["\"1\"", "\"1\""])
        #expect(transport.sent.map { $0.request.value(forHTTPHeaderField: "X-Number") } == ["1", "2"])
    }

    @Test("S-T15: the last error is the one that is thrown, and it is reported once")
    func failsAtLast() async throws {
        let transport = ScriptedTransport([.respond(500), .fail(progress: .bodySent), .respond(418)])
        let error = await #expect(throws: ServiceError.self) {
            try await CallFixtures.text().schedule(with: client(transport, Self.retrying([true, true, false])))
        }
        #expect(error?.response?.status.rawValue == 418)
        #expect(error?.response?.attempts.count == 3)
        #expect(transport.sent.count == 3)
        #expect(log.entries == ["a.schedule", "a.failure(unacceptable-status)", "process(unacceptable-status)"])
    }

    @Test("S-T16: without allowsMultipleRetries there is one retry, and the retrier is asked once")
    func oneRetry() async throws {
        let asked = CallFixtures.Log()
        let factory = AnyRetrierFactory { _ in
            ClosureRetrier(allowsMultipleRetries: false) { _ in
                asked.note("asked")
                return .retryNow
            }
        }
        let transport = ScriptedTransport([.respond(500), .respond(503)])
        let error = await #expect(throws: ServiceError.self) {
            try await CallFixtures.text().schedule(with: client(transport, factory))
        }
        #expect(error?.response?.status == .serviceUnavailable)
        #expect(transport.sent.count == 2)
        #expect(asked.entries.count == 1)
    }

    @Test("S-T18: concurrent calls have separate retriers")
    func ownRetriers() async throws {
        let made = CallFixtures.Log()
        let inner = Self.retrying([true, true])
        let factory = AnyRetrierFactory { request in
            made.note("made")
            return inner.create(for: request)
        }
        let transport = ScriptedTransport([.respond(503)], repeatsLastStep: true)
        let client = client(transport, factory)
        await withTaskGroup(of: Int?.self) { group in
            for _ in 0..<2 {
                group.addTask {
                    do {
                        _ = try await CallFixtures.text().schedule(with: client)
                        return nil
                    } catch {
                        return (error as? ServiceError)?.response?.attempts.count
                    }
                }
            }
            for await attempts in group { #expect(attempts == 3) }
        }
        #expect(made.entries.count == 2)
        #expect(transport.sent.count == 6)
    }

    @Test("S-T19: by default there is one send, whatever failed", arguments: [true, false])
    func noRetrier(_ answers: Bool) async throws {
        let transport = ScriptedTransport([answers ? .respond(503) : .fail(progress: .notSent)])
        let client = CallFixtures.client(CallFixtures.service(), transport)
        await #expect(throws: ServiceError.self) { try await CallFixtures.text().schedule(with: client) }
        #expect(transport.sent.count == 1)
    }

    @Test("S-T20: exponentialBinary waits 1, 2, 4, … 512 s: 11 sends, and then the 429 is thrown")
    func binaryDefaults() async throws {
        let clock = ManualClock(autoAdvances: true)
        let transport = ScriptedTransport([.respond(429)], repeatsLastStep: true)
        let error = await #expect(throws: ServiceError.self) {
            try await CallFixtures.text().schedule(with: client(transport, .exponentialBinary(), clock: clock))
        }
        #expect(error?.response?.status == .tooManyRequests)
        #expect(transport.sent.count == 11)
        #expect(clock.waits == (0..<10).map { .seconds(1 << $0) })
    }

    @Test("S-T21: maxBackoff is a strict bound", arguments: [(4, 2), (1, 0), (0, 0)])
    func binaryBound(_ maxBackoff: Int, _ retries: Int) async throws {
        let transport = ScriptedTransport([.respond(429)], repeatsLastStep: true)
        let factory: any RetrierFactory = .exponentialBinary(maxBackoff: .seconds(maxBackoff))
        await #expect(throws: ServiceError.self) {
            try await CallFixtures.text().schedule(with: client(transport, factory))
        }
        #expect(transport.sent.count == 1 + retries)
    }

    @Test("S-T22: exponentialBinary does not retry a 404 or a 500", arguments: [404, 500])
    func binaryStatuses(_ status: Int) async throws {
        let transport = ScriptedTransport([.respond(status)], repeatsLastStep: true)
        await #expect(throws: ServiceError.self) {
            try await CallFixtures.text().schedule(with: client(transport, .exponentialBinary()))
        }
        #expect(transport.sent.count == 1)
    }

    @Test("S-T22: exponentialBinary does not retry undecodable content or a request that cannot be built")
    func binaryFaults() async throws {
        struct Number: JsonRequest {
            typealias Result = Int
        }
        let transport = ScriptedTransport([.respond(200, body: "none")], repeatsLastStep: true)
        let client = client(transport, .exponentialBinary())
        await #expect(throws: ServiceError.self) { try await Number().schedule(with: client) }
        #expect(transport.sent.count == 1)
        var request = CallFixtures.text()
        request.body = .data(Data("x".utf8))
        let unbuildable = request
        await #expect(throws: ServiceError.self) { try await unbuildable.schedule(with: client) }
        #expect(transport.sent.count == 1)
    }

    @Test("S-T23: throttled for 20 s, exponentialBinary succeeds at 31 s")
    func binaryScenario() async throws {
        let clock = ManualClock(autoAdvances: true)
        let transport = ScriptedTransport { _ in .respond(clock.now.sinceOrigin < .seconds(20) ? 429 : 200, body: "ok")
        }
        let client = client(transport, .exponentialBinary(), clock: clock)
        #expect(try await CallFixtures.text().schedule(with: client) == "ok")
        #expect(transport.sent.map(\.time.sinceOrigin) == [0, 1, 3, 7, 15, 31].map { .seconds($0) })
    }

    @Test(
        "S-T26: a POST that timed out is not sent again unless it says that it may be",
        arguments: [(HttpMethod.post, nil, 1), (.post, true, 4), (.put, nil, 4)] as [(HttpMethod, Bool?, Int)]
    )
    func idempotency(_ method: HttpMethod, _ declared: Bool?, _ sends: Int) async throws {
        let transport = ScriptedTransport([.fail(.timeout, progress: .bodySent)], repeatsLastStep: true)
        var request = CallFixtures.text(method)
        request.options.isIdempotent = declared
        let failing = request
        await #expect(throws: ServiceError.self) {
            try await failing.schedule(with: client(transport, .default))
        }
        #expect(transport.sent.count == sends)
    }

    @Test("Undecodable content reaches a retrier whose factory asks for it, and the content is decoded once")
    func checkedAttempts() async throws {
        let decodings = CallFixtures.Log()
        let request = AnyRequest<Int>(routes: ["n"]) { data in
            decodings.note(String(decoding: data, as: UTF8.self))
            guard let number = Int(String(decoding: data, as: UTF8.self)) else { throw CallFixtures.NotText() }
            return number
        }
        let seen = CallFixtures.Log()
        let factory = AnyRetrierFactory(checksAttempts: true) { _ in
            ClosureRetrier { attempt in
                seen.note(attempt.error.map { CallFixtures.word($0) } ?? "")
                return .retryNow
            }
        }
        let transport = ScriptedTransport([.respond(200, body: "none"), .respond(200, body: "7")])
        #expect(try await request.schedule(with: client(transport, factory)) == 7)
        #expect(seen.entries == ["decoding-failed"])
        #expect(decodings.entries == ["none", "7"])
        #expect(transport.sent.count == 2)
    }

    @Test(
        "Truncated content is a failure: final by default, retried if attempts are checked",
        arguments: [false, true]
    )
    func brokenContent(_ checks: Bool) async throws {
        let broken = ServiceError(.connectionLost, "scripted", progress: .headReceived)
        let transport = ScriptedTransport([
            .stream(200, chunks: ["o"], length: 2, failure: broken), .stream(200, chunks: ["o", "k"], length: 2),
        ])
        let factory = AnyRetrierFactory(checksAttempts: checks) { _ in ClosureRetrier { _ in .retryNow } }
        let client = client(transport, factory)
        if checks {
            #expect(try await CallFixtures.text().schedule(with: client) == "ok")
            #expect(log.entries == ["a.schedule", "a.success(ok, network(attempts: 2))"])
        } else {
            let error = await #expect(throws: ServiceError.self) {
                try await CallFixtures.text().schedule(with: client)
            }
            #expect(error?.code == .connectionLost)
            #expect(log.entries == ["a.schedule", "a.failure(connection-lost)", "process(connection-lost)"])
            #expect(transport.sent.count == 1)
        }
    }
}
