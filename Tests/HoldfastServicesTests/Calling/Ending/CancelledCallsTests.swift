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

@Suite("Cancelled typed calls", .timeLimit(.minutes(20)))
struct CancelledCallsTests {
    enum Point: CaseIterable { case building, hook, sending, backoff, content }

    @Test(
        "S-T24: a cancelled call ends at once with a CancellationError; hooks get onCancel and nothing else",
        arguments: Point.allCases
    )
    func cancelled(at point: Point) async throws {
        let log = CallFixtures.Log()
        let reached = CountWatch()
        let never = CountWatch()
        let clock = ManualClock()
        var hooks = [CallFixtures.NotingHook(name: "a", log: log), CallFixtures.NotingHook(name: "b", log: log)]
        var service = CallFixtures.service(log)
        service.retrierFactory = .exponentialBinary()
        var steps: [ScriptedTransport.Step] = [.silence]
        var expected = ["a.schedule", "b.schedule", "b.cancel", "a.cancel"]
        var sends = 1
        var answering: (any Transport)?
        switch point {
        case .building:
            service.makeHeader = {
                reached.increment()
                try await never.wait(for: 1)
                return [:]
            }
            expected = []
            sends = 0
        case .hook:
            hooks[1].meanwhile = {
                reached.increment()
                try? await never.wait(for: 1)
            }
            sends = 0
        case .sending: break
        case .backoff: steps = [.respond(429), .respond(200)]
        case .content:
            let content = EndlessContent(reached: reached)
            answering = AnsweringTransport { content.response }
        }
        let transport = ScriptedTransport(steps)
        service.requestHooks = hooks
        let client = CallFixtures.client(service, answering ?? transport, clock: clock)
        let call = Task { try await CallFixtures.text().schedule(with: client) }
        switch point {
        case .building, .hook: try await reached.wait(for: 1)
        case .content: try await reached.wait(for: 2)
        case .sending: try await transport.waitForSends(1)
        case .backoff: try await clock.waitForSleeps(1)
        }
        call.cancel()
        await #expect(throws: CancellationError.self) { try await call.value }
        #expect(log.entries == expected)
        #expect(transport.sent.count == (answering == nil ? sends : 0))
    }

    @Test(
        "S-T25: a cancellation that the transport throws is neither retried nor reported as a failure",
        arguments: [true, false]
    )
    func transportCancels(_ isFoundations: Bool) async throws {
        let log = CallFixtures.Log()
        let error: any Error = isFoundations ? URLError(.cancelled) : CancellationError()
        let transport = ScriptedTransport([.fail(error)], repeatsLastStep: true)
        var service = CallFixtures.service(log, hooks: [CallFixtures.NotingHook(name: "a", log: log)])
        service.retrierFactory = AnyRetrierFactory { _ in
            Issue.record("a cancelled call asked for a retrier")
            return NilRetrier()
        }
        let client = CallFixtures.client(service, transport)
        await #expect(throws: CancellationError.self) { try await CallFixtures.text().schedule(with: client) }
        #expect(transport.sent.count == 1)
        #expect(log.entries == ["a.schedule", "a.cancel"])
    }

    @Test("mapError has the last word on cancellation too")
    func mapped() async throws {
        enum ApiError: Error { case cancelled, other }
        struct Mapping: HttpService {
            var apiUrl: any UrlConvertible { "api.example.com" }
            func mapError(_ error: any Error) -> ApiError { error is CancellationError ? .cancelled : .other }
        }
        let transport = ScriptedTransport([.silence])
        let client = ServiceClient(Mapping(), transport: transport)
        let call = Task { try await CallFixtures.text().schedule(with: client) }
        try await transport.waitForSends(1)
        call.cancel()
        await #expect(throws: ApiError.cancelled) { try await call.value }
    }
}
