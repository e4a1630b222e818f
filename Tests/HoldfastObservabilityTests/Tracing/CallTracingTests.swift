// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Observability
    import Foundation
    import Holdfast
    import HoldfastObservability
    import HoldfastTesting
    import InMemoryTracing
    import Testing
    import Tracing

    #if canImport(FoundationNetworking)
        import FoundationNetworking
    #endif

    /// OpenTelemetry's semantic conventions for HTTP client spans.
    @Suite(.timeLimit(.minutes(20))) struct CallTracingTests {
        @Test("A call has a span, and each attempt a child span; resends are numbered from the second attempt")
        func retried() async throws {
            let bench = ObservedPipeline([.respond(503), .fail(progress: .notSent), .respond()])
            try await bench.get("https://u:p@example.com/a?key=secret", operation: "getForecast")
            let call = try #require(bench.spans(.internal).first)
            let sends = bench.spans(.client)
            #expect(call.operationName == "GET getForecast")
            #expect(call.parentSpanID == nil)
            #expect(call.attributes.get("holdfast.source") == "network")
            #expect(call.attributes.get("url.full") == "https://example.com/a?key=REDACTED")
            // The second may have to wait for its turn as well, since the first has failed.
            let names = call.events.map(\.name).filter { $0 != "holdfast.budget-awaited" }
            #expect(names == ["holdfast.retry-scheduled", "holdfast.retry-scheduled"])
            #expect(sends.map(\.operationName) == Array(repeating: "GET getForecast", count: 3))
            #expect(sends.allSatisfy { $0.parentSpanID == call.spanID })
            #expect(sends.map { $0.attributes.get("http.request.resend_count") } == [nil, 1, 2])
            #expect(sends.map { $0.attributes.get("http.response.status_code") } == [503, nil, 200])
            #expect(sends.map { $0.attributes.get("error.type") } == ["503", "connection-lost", nil])
            #expect(sends.map { $0.status?.code == .error } == [true, true, false])
            let first = try #require(sends.first)
            #expect(first.attributes.get("http.request.method") == "GET")
            #expect(first.attributes.get("server.address") == "example.com")
            #expect(first.attributes.get("server.port") == 443)
        }

        @Test("A hit has only a call span, which records why it was a hit")
        func hit() async throws {
            let bench = ObservedPipeline([.respond(200, ["Cache-Control": "max-age=60"])], cache: .inMemory())
            for _ in 0..<2 { try await bench.get("https://example.com/a") }
            #expect(bench.spans(.client).count == 1)
            let calls = bench.spans(.internal)
            #expect(calls.map { $0.attributes.get("holdfast.source") } == ["network", "fresh"])
            #expect(calls.last?.attributes.get("holdfast.cache.outcome") == "hit")
            #expect(calls.last?.attributes.get("holdfast.cache.reason") == "fresh")
        }

        @Test("Each send carries the context of its own span, and the caches see none of it")
        func propagation() async throws {
            let bench = ObservedPipeline(
                [.respond(503), .respond(200, ["Cache-Control": "max-age=60", "Vary": "in-memory-span-id"])],
                cache: .inMemory()
            )
            for _ in 0..<2 { try await bench.get("https://example.com/a") }
            let sent = bench.transport.sent.map { $0.request.value(forHTTPHeaderField: InMemoryTracer.spanIDKey) }
            #expect(sent == bench.spans(.client).map(\.spanID))
            #expect(Set(sent).count == 2)
            #expect(bench.spans(.internal).last?.attributes.get("holdfast.source") == "fresh")
        }

        @Test("The call's span is a child of the caller's, and a client's own spans are children of the attempt's")
        func nesting() async throws {
            let tracer = InMemoryTracer()
            let transport = ScriptedTransport(answering: { _ in
                tracer.startSpan("inner").end()
                return .respond()
            })
            var configuration = PipelineConfiguration()
            configuration.observe(with: PipelineObserver(tracer: tracer, options: .init()))
            let pipeline = Pipeline(transport: transport, configuration: configuration)
            let request = URLRequest(url: try #require(URL(string: "https://example.com/")))
            let outer = tracer.startSpan("outer")
            _ = try await ServiceContext.withValue(outer.context) { try await pipeline.send(request) }
            outer.end()
            let spans = tracer.finishedSpans
            #expect(spans.map(\.operationName) == ["inner", "GET", "GET", "outer"])
            for (child, parent) in zip(spans, spans.dropFirst()) { #expect(child.parentSpanID == parent.spanID) }
        }

        @Test("Each hop of a redirect is a send of its own, with the next number")
        func redirect() async throws {
            let bench = ObservedPipeline([.respond(302, ["Location": "https://other.example/b"]), .respond()])
            try await bench.get("https://example.com/a")
            let sends = bench.spans(.client)
            #expect(sends.map { $0.attributes.get("server.address") } == ["example.com", "other.example"])
            #expect(sends.map { $0.attributes.get("http.request.resend_count") } == [nil, 1])
            #expect(bench.spans(.internal).first?.events.map(\.name) == ["holdfast.redirected"])
        }

        @Test("An unknown method is recorded as _OTHER, and the span is named HTTP")
        func otherMethod() async throws {
            let bench = ObservedPipeline()
            var request = URLRequest(url: try #require(URL(string: "http://example.com:8080/")))
            request.httpMethod = "BREW"
            _ = try await bench.pipeline.send(request)
            let send = try #require(bench.spans(.client).first)
            #expect(send.operationName == "HTTP")
            #expect(send.attributes.get("http.request.method") == "_OTHER")
            #expect(send.attributes.get("http.request.method_original") == "BREW")
            #expect(send.attributes.get("server.port") == 8080)
        }

        @Test("A background revalidation is a child of the call that started it")
        func background() async throws {
            let clock = ManualClock()
            let fields: HeaderFields = ["Cache-Control": "max-age=1, stale-while-revalidate=60", "ETag": "\"a\""]
            let bench = ObservedPipeline(
                [.respond(200, fields), .respond(304, fields)],
                cache: .inMemory(),
                clock: clock
            )
            try await bench.get("https://example.com/a")
            await bench.pipeline.drain()
            clock.advance(by: .seconds(5))
            try await bench.get("https://example.com/a")
            await bench.pipeline.drain()
            let stale = try #require(bench.spans(.internal).last)
            #expect(stale.attributes.get("holdfast.source") == "stale")
            let revalidation = try #require(bench.spans(.client).last)
            #expect(revalidation.attributes.get("http.response.status_code") == 304)
            #expect(revalidation.parentSpanID == stale.spanID)
            #expect(bench.tracer.activeSpans.isEmpty)
        }
    }
#endif
