// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastSemantics
import HoldfastStorage
import HoldfastTesting
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Defects of other retriers that show only in a whole pipeline; the others stand with the parts that they concern.
@Suite("Defects and complaints, in a pipeline (RETRY.md §1, §6)", .timeLimit(.minutes(20)))
struct DefectTests {
    let clock = ManualClock(autoAdvances: true)

    func pipeline(_ transport: ScriptedTransport, _ factory: any RetrierFactory = .backoff()) -> Pipeline {
        var configuration = PipelineConfiguration()
        configuration.clock = clock
        return Pipeline(transport: transport, retrierFactory: factory, configuration: configuration)
    }

    @Test("Defect 7 of 15: a call that gives up keeps its last body, and affects no other call")
    func lastBody() async throws {
        let transport = ScriptedTransport { request in
            request.url?.path == "/slow"
                ? .stream(200, chunks: ["a", "b", "c"]) : .stream(500, chunks: ["what ", "happened"])
        }
        let pipeline = pipeline(transport)
        let underWay = try await pipeline.send(.get("http://origin.example/slow"))
        let failed = try await pipeline.send(.get("http://origin.example/down"))
        #expect(failed.attempts.last?.stopReason == .attemptsExhausted)
        #expect(try await failed.body.collect() == ByteChunk(copying: "what happened".utf8))
        #expect(try await underWay.body.collect() == ByteChunk(copying: "abc".utf8))
    }

    @Test(
        "Defect 7 of 15: failed responses that are retried are read to their end, so that connections are reused"
    )
    func drained() async throws {
        let ended = EventRecorder()
        let transport = ScriptedTransport([.stream(500, chunks: ["x", "y"]), .respond(200)])
        var pipeline = pipeline(transport)
        var configuration = pipeline.configuration
        configuration.observers = [ended]
        configuration.attemptTimeout = nil
        pipeline = Pipeline(transport: transport, retrierFactory: .backoff(), configuration: configuration)
        _ = try await pipeline.send(.get())
        await pipeline.drain()
        let bodies = ended.events(.bodyEnded)
        #expect(bodies.first?.bytes == 2)
        #expect(bodies.first?.error == nil)
    }

    @Test("Defect 12 of 15: a body that can be read once is sent, whatever the retrier could do with it later")
    func oneShotIsSent() async throws {
        var rules = RetryRules.default
        rules.replayLimit = 0
        let transport = ScriptedTransport([.respond(200)])
        let body = RequestBody.oneShot(OneChunk("streamed"))
        let response = try await pipeline(transport, .backoff(rules))
            .send(.request("POST", "http://origin.example/"), body: body)
        #expect(response.status == .ok)
        #expect(transport.sent.first?.body == ByteChunk(copying: "streamed".utf8))
    }

    @Test("Defect 12 of 15: a custom condition sees the response, and may wait before it decides")
    func conditionSeesResponse() async throws {
        let transport = ScriptedTransport([.respond(500, [.retryAfter: "1"], body: "busy")], repeatsLastStep: true)
        let seen = EventRecorder()
        let factory = BackoffRetrier.factory(retryCondition: { failed in
            await Task.yield()
            #expect(failed.response?.fields[.retryAfter] == "1")
            seen.observe(ServiceEvent(.retryScheduled, callID: CallID(number: 0), timestamp: failed.receivedAt))
            return failed.number < 2
        })
        let response = try await pipeline(transport, factory).send(.get())
        #expect(response.attempts.map(\.stopReason) == [nil, .retrierDeclined])
        #expect(seen.events.count == 2)
    }

    @Test(
        "Complaint 12 of 12: one clock and one random source: the same seed gives the same waits, and none is slept"
    )
    func repeatable() async throws {
        func waits(_ seed: UInt64) async throws -> [Duration] {
            let clock = ManualClock(autoAdvances: true)
            var configuration = PipelineConfiguration()
            configuration.clock = clock
            let factory = BackoffRetrier.factory(
                strategy: .exponential(RetryRules(maxAttempts: 8)),
                makeGenerator: { SeededGenerator(seed: seed) }
            )
            let transport = ScriptedTransport([.respond(500)], repeatsLastStep: true)
            let pipeline = Pipeline(transport: transport, retrierFactory: factory, configuration: configuration)
            for _ in 0..<5 { _ = try await pipeline.send(.get()) }
            return clock.waits
        }
        let first = try await waits(3)
        #expect(first.count > 3)
        #expect(try await waits(3) == first)
        #expect(try await waits(4) != first)
    }
}
