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

/// What observers are told, and that what surrounds calls and sends does so once each.
@Suite(.timeLimit(.minutes(20))) struct ServiceEventTests {
    private let recorder = EventRecorder()
    private let clock = ManualClock(autoAdvances: true)

    private func configuration() -> PipelineConfiguration {
        var configuration = PipelineConfiguration()
        configuration.clock = clock
        configuration.observers = [recorder]
        return configuration
    }

    private func request(_ text: String) throws -> URLRequest {
        URLRequest(url: try #require(URL(string: text)))
    }

    @Test("Every event has method, URL and operation, and prints no credential")
    func subject() async throws {
        let pipeline = Pipeline(transport: ScriptedTransport([.respond()]), configuration: configuration())
        var options = CallOptions()
        options.operationName = "getForecast"
        _ = try await pipeline.send(try request("https://u:p@example.com/a?key=secret"), options: options)
        #expect(recorder.events.count == 4)
        for event in recorder.events {
            #expect(event.method == .get)
            #expect(event.operationName == "getForecast")
            #expect(event.url?.description == "https://example.com/a?key=REDACTED")
            #expect(!"\(event)".contains("secret"))
        }
    }

    @Test("Retries have class and delay, and their end has its reason")
    func retries() async throws {
        let steps: [ScriptedTransport.Step] = [
            .respond(503), .fail(progress: .bodySent), .respond(500), .respond(500),
        ]
        let pipeline = Pipeline(
            transport: ScriptedTransport(steps),
            retrierFactory: .default,
            configuration: configuration()
        )
        _ = try await pipeline.send(try request("https://example.com/"))
        let scheduled = recorder.events(.retryScheduled)
        #expect(scheduled.map(\.retryClass) == [.ambiguous, .ambiguous, .ambiguous])
        #expect(scheduled.map(\.status) == [503, nil, 500])
        #expect(scheduled.map(\.errorCode) == [nil, "connection-lost", nil])
        #expect(recorder.events(.attemptEnded).map(\.progress) == [nil, .bodySent, nil, nil])
        #expect(recorder.events(.retriesStopped).map(\.stopReason) == [.attemptsExhausted])
    }

    @Test("A redirect has its target, and later events belong to the hop")
    func redirect() async throws {
        let steps: [ScriptedTransport.Step] = [
            .respond(302, ["Location": "https://other.example/b?code=secret"]), .respond(),
        ]
        let pipeline = Pipeline(transport: ScriptedTransport(steps), configuration: configuration())
        _ = try await pipeline.send(try request("https://example.com/a"))
        let redirected = try #require(recorder.events(.redirected).first)
        #expect(redirected.redirectTarget?.description == "https://other.example/b?code=REDACTED")
        #expect(recorder.events(.attemptStarted).map(\.url?.host) == ["example.com", "other.example"])
    }

    @Test("A cache decision is a value, and so is the reason for not storing")
    func cache() async throws {
        let steps: [ScriptedTransport.Step] = [.respond(200, ["Cache-Control": "no-store"])]
        let pipeline = Pipeline(
            transport: ScriptedTransport(steps),
            cache: .inMemory(),
            configuration: configuration()
        )
        let response = try await pipeline.send(try request("https://example.com/a"))
        _ = try await response.body.collect()
        #expect(recorder.events(.cacheDecided).map(\.cacheDecision?.outcome) == [.miss])
        #expect(recorder.events(.responseNotStored).map(\.notStoredReason) == [.responseNoStore])
        #expect(recorder.events(.callEnded).map(\.cacheDecision?.outcome) == [.miss])
    }

    @Test("A transport wrapper hides nothing that the transport tells the pipeline")
    func transparent() throws {
        let inner = ScriptedTransport([], implicit: { _ in ["Authorization": "a"] })
        let intercepted = SurroundedTransport(transport: inner, interceptors: [Counting()])
        #expect(intercepted.enforcesDeadline)
        #expect(intercepted.implicitFields(for: try request("https://example.com/")) == ["Authorization": "a"])
    }

    @Test("A call interceptor runs once, and once for each send; no cache sees its fields")
    func interceptors() async throws {
        let surrounding = Counting()
        var configuration = configuration()
        configuration.interceptors = [surrounding]
        let transport = ScriptedTransport([.respond(503), .respond(200, ["Cache-Control": "max-age=60"])])
        let pipeline = Pipeline(
            transport: transport,
            cache: .inMemory(),
            retrierFactory: .default,
            configuration: configuration
        )
        for _ in 0..<2 {
            _ = try await pipeline.send(try request("https://example.com/a")).body.collect()
            await pipeline.drain()
        }
        #expect(surrounding.counts.withLock { $0 } == [2, 2])
        #expect(transport.sent.map { $0.request.value(forHTTPHeaderField: "X-Count") } == ["1", "2"])
        #expect(recorder.events(.callEnded).map(\.source) == [.network(attempts: 2), .fresh])
    }
}

private final class Counting: CallInterceptor {
    let counts = Mutex([0, 0])

    func interceptCall(
        _ request: URLRequest,
        context: CallContext,
        proceed: () async throws -> Response
    ) async throws -> Response {
        counts.withLock { $0[0] += 1 }
        return try await proceed()
    }

    func interceptSend(
        _ request: URLRequest,
        context: CallContext,
        proceed: (URLRequest) async throws -> Response
    ) async throws -> Response {
        var request = request
        let count = counts.withLock { counts in
            counts[1] += 1
            return counts[1]
        }
        request.setValue("\(count)", forHTTPHeaderField: "X-Count")
        return try await proceed(request)
    }
}
