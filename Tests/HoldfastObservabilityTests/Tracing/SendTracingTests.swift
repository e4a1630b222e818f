// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Observability
    import Foundation
    import Holdfast
    import HoldfastObservability
    import HoldfastSemantics
    import HoldfastTesting
    import InMemoryTracing
    import MetricsTestKit
    import Testing
    import Tracing

    #if canImport(FoundationNetworking)
        import FoundationNetworking
    #endif

    /// Where sends and calls are not one to one.
    @Suite(.timeLimit(.minutes(20))) struct SendTracingTests {
        @Test("Each copy of a hedge is a send of its own; the slower one ends as cancelled")
        func hedge() async throws {
            var hedging = HedgeRules()
            hedging.fixedDelay = .milliseconds(10)
            hedging.maxExtraLoad = 1
            var rules = RetryRules.default
            rules.hedging = hedging
            let clock = ManualClock()
            let bench = ObservedPipeline(
                [.silence, .respond()],
                retrierFactory: .backoff(rules),
                clock: clock
            )
            let call = Task { try await bench.get("https://example.com/a") }
            try await clock.waitForSleeps(2)
            clock.advance(by: .milliseconds(10))
            let response = try await call.value
            #expect(response.status == .ok)
            // The loser ends in a task of its own.
            try await bench.progress.sends.wait(for: 2)
            let ends = bench.spans(.client).map { span in span.attributes.get("error.type") }
            #expect(ends == [nil, "cancelled"] || ends == ["cancelled", nil])
            let counts = bench.spans(.client).map { $0.attributes.get("http.request.resend_count") }
            #expect(counts.contains(nil) && counts.contains(1))
            #expect(Set(bench.spans(.client).map(\.parentSpanID)).count == 1)
            #expect(bench.metrics.counterTotal(label: "holdfast.hedges") == 1)
            #expect(try bench.metrics.expectCounter("holdfast.hedges.ended", [("outcome", "2xx")]).totalValue == 1)
        }

        @Test("A request that an open circuit refuses is not a send, and the circuit's change is counted")
        func circuit() async throws {
            var rules = RetryRules.default
            rules.circuit = CircuitRules()
            rules.maxAttempts = 1
            let bench = ObservedPipeline([.respond(500)], retrierFactory: .backoff(rules), clock: ManualClock())
            for _ in 0..<30 { _ = try? await bench.get("https://example.com/a") }
            #expect(bench.spans(.internal).count == 30)
            #expect(bench.spans(.client).count == bench.transport.sent.count)
            #expect(bench.transport.sent.count < 30)
            #expect(bench.spans(.internal).last?.attributes.get("error.type") == "circuit-open")
            let opened = try bench.metrics.expectCounter(
                "holdfast.circuit.changes",
                [("state", "open"), ("server.address", "example.com"), ("server.port", "443")]
            )
            #expect(opened.totalValue == 1)
            for _ in 0..<30 { _ = try? await bench.get("https://example.com:8443/a") }
            for port in ["443", "8443"] {
                let isOpen = try bench.metrics.expectGauge(
                    "holdfast.circuit.open",
                    [("server.address", "example.com"), ("server.port", port)]
                )
                #expect(isOpen.lastValue == 1, "port \(port)")
            }
        }

        @Test("A call that joins another one's exchange has no send and links to that call's span")
        func collapsed() async throws {
            let clock = ManualClock()
            let fields: HeaderFields = ["Cache-Control": "max-age=60"]
            let bench = ObservedPipeline(
                [.respond(200, fields, body: "x").delayed(by: .seconds(1))],
                cache: .inMemory(),
                clock: clock
            )
            let first = Task { try await bench.get("https://example.com/a") }
            try await bench.transport.waitForSends(1)
            let second = Task { try await bench.get("https://example.com/a") }
            try await bench.progress.calls.wait(for: 2)
            // Nothing tells that it has joined; where it has not by then, it finds what is stored.
            for _ in 0..<1000 { await Task.yield() }
            try await clock.waitForSleeps(1)
            clock.advance(by: .seconds(1))
            _ = try await (first.value, second.value)
            #expect(bench.spans(.client).count == 1)
            let calls = bench.spans(.internal)
            guard let rider = calls.first(where: { $0.attributes.get("holdfast.source") == "collapsed" }) else {
                // The second call came after the first one's response: then it is a hit, which is as good.
                #expect(calls.contains { $0.attributes.get("holdfast.source") == "fresh" })
                return
            }
            let leader = try #require(calls.first { $0.attributes.get("holdfast.source") == "network" })
            #expect(rider.links.count == 1)
            #expect(rider.links.first?.context.inMemorySpanContext?.spanID == leader.spanID)
        }

        @Test("An attempt that ran out of time is a timeout, also if the pipeline ended it")
        func timeout() async throws {
            let tracer = InMemoryTracer()
            var configuration = PipelineConfiguration()
            let clock = ManualClock()
            configuration.clock = clock
            configuration.attemptTimeout = .seconds(5)
            let progress = Progress()
            configuration.interceptors = [progress]
            configuration.observe(with: PipelineObserver(tracer: tracer))
            let pipeline = Pipeline(transport: Endless(), configuration: configuration)
            let request = URLRequest(url: try #require(URL(string: "https://example.com/")))
            let call = Task { try await pipeline.send(request) }
            try await clock.waitForSleeps(2)
            clock.advance(by: .seconds(5))
            await #expect(throws: ServiceError.self) { try await call.value }
            try await progress.sends.wait(for: 1)
            #expect(tracer.finishedSpans.map { $0.attributes.get("error.type") } == ["timeout", "timeout"])
        }
    }

    /// Sleeps on the call's clock and heeds no deadline.
    private struct Endless: Transport {
        func send(_ request: URLRequest, body: RequestBody, context: CallContext) async throws -> Response {
            try await context.clock.sleep(until: context.clock.now.advanced(by: .seconds(1 << 30)))
            return Response(status: .ok)
        }
    }
#endif
