// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastSemantics
import HoldfastStorage
import HoldfastTesting
import Synchronization
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("Acceptances and the attempt loop", .timeLimit(.minutes(20)))
struct AcceptanceTests {
    let bench = AttemptBench()

    @Test("An acceptance is checked above the message hooks and below the call hooks")
    func acceptance() async throws {
        let log = HookLog()
        let hooks = [RecordingHook(name: "call", log: log), RecordingHook(name: "message", log: log, scope: .message)]
        var options = CallOptions()
        options.acceptance = .successful
        do {
            _ = try await bench.pipeline(ScriptedTransport([.respond(404)]), NilRetrier(), hooks: hooks).send(
                .get(),
                options: options
            )
            Issue.record("the call should fail")
        } catch let error as ServiceError {
            #expect(error.code == .unacceptableStatus)
            #expect(error.response?.status == .notFound)
        }
        #expect(
            log.entries == [
                "call.schedule", "message.schedule", "message.success(404, network(attempts: 1))", "call.failure",
            ]
        )
    }

    @Test(
        "S-T13: a 2xx that the acceptance refuses: no retry by default, one onFailure, no onSuccess for call hooks"
    )
    func refusedSuccess() async throws {
        let log = HookLog()
        var options = CallOptions()
        options.acceptance = Acceptance { _ in throw Refused(reason: "does not decode") }
        let transport = ScriptedTransport([.respond(200, body: "{")], repeatsLastStep: true)
        let pipeline = bench.pipeline(transport, hooks: [RecordingHook(name: "call", log: log)])
        await #expect(throws: Refused(reason: "does not decode")) { try await pipeline.send(.get(), options: options) }
        #expect(log.entries == ["call.schedule", "call.failure"])
        #expect(transport.sent.count == 1)
    }

    @Test("By opt-in an acceptance checks each attempt, so a bad 2xx is retried")
    func acceptancePerAttempt() async throws {
        var acceptance = Acceptance { response in
            let bytes = try await response.body.collect()
            response.body = ResponseBody(bytes)
            if bytes == ByteChunk(copying: "bad".utf8) { throw Refused(reason: "bad") }
        }
        acceptance.checksAttempts = true
        var options = CallOptions()
        options.acceptance = acceptance
        let transport = ScriptedTransport([.respond(200, body: "bad"), .respond(200, body: "good")])
        let response = try await bench.pipeline(transport).send(.get(), options: options)
        #expect(try await response.body.collect() == ByteChunk(copying: "good".utf8))
        #expect(transport.sent.count == 2)
    }
}
