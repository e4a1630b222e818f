// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Observability
    import CoreMetrics
    import Foundation
    import Holdfast
    import HoldfastObservability
    import HoldfastSemantics
    import HoldfastTesting
    import Testing

    #if canImport(FoundationNetworking)
        import FoundationNetworking
    #endif

    @Suite("Metrics on a backend that refuses changed labels", .timeLimit(.minutes(20)))
    struct StrictMetricsTests {
        private static let names: [ServiceEvent.Name] = [
            .callStarted, .callEnded, .attemptStarted, .attemptEnded, .retryScheduled, .resendScheduled,
            .retriesStopped,
            .hedgeStarted, .hedgeEnded, .bodyResumed, .circuitOpened, .circuitClosed, .gateClosed, .gateAwaited,
            .backoffAwaited, .paceAwaited, .budgetAwaited, .connectivityAwaited, .redirected, .interimResponse,
            .bodyEnded,
            .cacheDecided,
            .responseStored, .responseNotStored, .backgroundRevalidationStarted, .backgroundRevalidationFailed,
            .fillAwaited, .storeFailed, ServiceEvent.Name("one of my own"),
        ]

        /// What may be there or not.
        private static let parts: [@Sendable (inout ServiceEvent) -> Void] = [
            { event in
                guard let url = URL(string: "https://example.com:8443/a?b=c") else { return }
                event.subject = CallSubject(
                    method: RequestMethod(rawValue: "GET"),
                    url: RedactedURL(url),
                    operationName: "get"
                )
            },
            { $0.status = StatusCode(rawValue: 404) },
            { $0.error = ServiceError(.timeout, "too slow") },
            { $0.delay = .seconds(1) },
            { $0.bytes = 3 },
            { $0.source = .fresh },
            { event in
                event.stopReason = StopReason(rawValue: "reason")
                event.notStoredReason = CacheReason(code: "code")
                event.detail = "detail"
            },
            { $0.status = StatusCode(rawValue: 42) },
        ]

        @Test("The strict backend notices what would crash a real one")
        func double() {
            let metrics = StrictMetrics()
            _ = metrics.makeCounter(label: "a.b", dimensions: [("x", "1")])
            _ = metrics.makeCounter(label: "a.b", dimensions: [("x", "2")])
            #expect(metrics.breaches.isEmpty)
            _ = metrics.makeCounter(label: "a_b", dimensions: [("y", "1")])
            _ = metrics.makeCounter(label: "a.b", dimensions: [])
            _ = metrics.makeTimer(label: "a-b", dimensions: [("x", "1")])
            _ = metrics.makeTimer(label: "t", dimensions: [("le", "1")])
            #expect(metrics.breaches.count == 4)
        }

        @Test("It accepts every event, with and without each of its parts")
        func everyEvent() {
            let metrics = StrictMetrics()
            let observer = PipelineObserver(metrics: metrics)
            var number: UInt64 = 0
            for name in Self.names {
                for chosen in 0..<(1 << Self.parts.count) {
                    number += 1
                    var event = ServiceEvent(
                        name,
                        callID: CallID(number: number),
                        timestamp: Timestamp(secondsSinceEpoch: 0)
                    )
                    for (index, add) in Self.parts.enumerated() where chosen & (1 << index) != 0 { add(&event) }
                    observer.observe(event)
                }
            }
            #expect(metrics.breaches == [])
            #expect(metrics.names.count > 15)
        }

        @Test("It accepts calls that hit, miss, fail, are retried, redirected or refused, and the reporter beside them")
        func calls() async throws {
            let metrics = StrictMetrics()
            var configuration = PipelineConfiguration()
            let clock = ManualClock(autoAdvances: true)
            configuration.clock = clock
            configuration.observe(with: PipelineObserver(metrics: metrics))
            let transport = ScriptedTransport([
                .respond(200, ["Cache-Control": "max-age=60"], body: "a"), .respond(404), .respond(503), .respond(200),
                .fail(.certificate, progress: .notSent), .fail(.connect, progress: .notSent), .respond(200),
                .respond(302, ["Location": "/x"]), .respond(200), .respond(429, ["Retry-After": "7200"]),
            ])
            let cache = HTTPCache.inMemory()
            let factory = BackoffRetrier.Factory.default
            let pipeline = Pipeline(
                transport: transport,
                cache: cache,
                retrierFactory: factory,
                configuration: configuration
            )
            for path in ["a", "a", "b", "c", "d", "e", "f", "g"] {
                let url = try #require(URL(string: "https://example.com/\(path)"))
                let response = try? await pipeline.send(URLRequest(url: url))
                _ = try? await response?.body.collect()
            }
            await pipeline.drain()
            let origin = try #require(URL(string: "https://example.com"))
            let reporter = MetricsReporter(
                caches: ["main": cache],
                governors: try ["main": #require(factory.governor)],
                origins: [origin],
                metrics: metrics,
                clock: clock
            )
            reporter.collect()
            reporter.collect()
            #expect(metrics.breaches == [])
            #expect(metrics.names.isSuperset(of: ["http_client_request_duration", "holdfast_store_entries"]))
        }
    }
#endif
