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

@Suite("ScriptedTransport and EventRecorder", .timeLimit(.minutes(20)))
struct ScriptedTransportTests {
    private var request: URLRequest {
        get throws { URLRequest(url: try #require(URL(string: "http://h.example/"))) }
    }

    @Test("Steps are played in order, and after the last one an error says so")
    func order() async throws {
        let transport = ScriptedTransport([.respond(201), .fail(progress: .headSent)])
        let context = CallContext(clock: ManualClock())
        #expect(try await transport.send(try request, body: .none, context: context).status.rawValue == 201)
        for expected in [ServiceError.Code.connectionLost, .unsupported] {
            do {
                _ = try await transport.send(try request, body: .none, context: context)
                Issue.record("an error was expected")
            } catch let error as ServiceError {
                #expect(error.code == expected)
            }
        }
        #expect(transport.sent.count == 3)
    }

    @Test("A delay uses the call's clock and ends at its deadline")
    func deadline() async throws {
        let clock = ManualClock(autoAdvances: true)
        let transport = ScriptedTransport([.respond().delayed(by: .seconds(3)), .respond().delayed(by: .seconds(30))])
        let context = CallContext(clock: clock, deadline: clock.now.advanced(by: .seconds(10)))
        #expect(try await transport.send(try request, body: .none, context: context).status == .ok)
        #expect(clock.now.sinceOrigin == .seconds(3))
        do {
            _ = try await transport.send(try request, body: .none, context: context)
            Issue.record("a timeout was expected")
        } catch let error as ServiceError {
            #expect(error.code == .timeout)
        }
        #expect(clock.now.sinceOrigin == .seconds(10))
    }

    @Test("What was sent is recorded with its body")
    func recording() async throws {
        let transport = ScriptedTransport([.respond()], repeatsLastStep: true)
        let context = CallContext(clock: ManualClock())
        let body = ByteChunk(copying: "hello".utf8)
        _ = try await transport.send(try request, body: .bytes(body), context: context)
        #expect(transport.sent.map(\.body) == [body])
        #expect(transport.sent.first?.request.url == (try request).url)
    }

    @Test("A streamed body plays its chunks, then ends or fails; a cancelled one throws")
    func bodies() async throws {
        let failure = ServiceError(.connectionLost, "scripted")
        let transport = ScriptedTransport([
            .stream(chunks: ["a", "b"]), .stream(chunks: ["a"], failure: failure), .stream(chunks: ["a"]),
        ])
        let context = CallContext(clock: ManualClock())
        let whole = try await transport.send(try request, body: .none, context: context)
        #expect(try await whole.body.collect() == ByteChunk(copying: "ab".utf8))
        let broken = try await transport.send(try request, body: .none, context: context)
        await #expect(throws: ServiceError.self) { try await broken.body.collect() }
        let dropped = try await transport.send(try request, body: .none, context: context)
        dropped.body.discard()
        await #expect(throws: CancellationError.self) { try await dropped.body.collect() }
    }

    @Test("The recorder keeps events in order")
    func recorder() async throws {
        let recorder = EventRecorder()
        var configuration = PipelineConfiguration()
        configuration.observers = [recorder]
        _ = try await Pipeline(transport: ScriptedTransport([.respond()]), configuration: configuration).send(
            try request
        )
        #expect(recorder.names == [.callStarted, .attemptStarted, .attemptEnded, .callEnded])
        #expect(Set(recorder.events.map(\.callID)).count == 1)
        #expect(recorder.events(.callEnded).first?.source == .network(attempts: 1))
    }
}
