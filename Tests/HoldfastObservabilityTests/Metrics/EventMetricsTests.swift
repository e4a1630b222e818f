// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Observability
    import Foundation
    import Holdfast
    @testable import HoldfastObservability
    import HoldfastSemantics
    import HoldfastTesting
    import MetricsTestKit
    import Testing

    #if canImport(FoundationNetworking)
        import FoundationNetworking
    #endif

    @Suite(.timeLimit(.minutes(20))) struct EventMetricsTests {
        @Test("Calls are counted by source, attempts by outcome and duration, retries by class and stop reason")
        func retried() async throws {
            let bench = ObservedPipeline(
                [.respond(503).delayed(by: .seconds(2)), .respond(200, ["Cache-Control": "max-age=60"], body: "abc")],
                cache: .inMemory()
            )
            for _ in 0..<3 { try await bench.get("https://example.com/a", operation: "getForecast") }
            let metrics = bench.metrics
            #expect(metrics.counterTotal(label: "holdfast.calls") == 3)
            let calls = try metrics.expectCounter(
                "holdfast.calls",
                [("source", "fresh"), ("outcome", "2xx"), ("operation", "getForecast")]
            )
            #expect(calls.totalValue == 2)
            #expect(metrics.counterTotal(label: "holdfast.attempts") == 2)
            let decisions = try metrics.expectCounter(
                "holdfast.retry.decisions",
                [("class", "ambiguous"), ("stop_reason", "none")]
            )
            #expect(decisions.totalValue == 1)
            let waits = try metrics.expectCounter("holdfast.waits", [("kind", "backoff")])
            #expect(waits.totalValue == 1)
            let duration = try metrics.expectTimer(
                "http.client.request.duration",
                [
                    ("http.request.method", "GET"), ("server.address", "example.com"), ("server.port", "443"),
                    ("http.response.status_code", "503"), ("error.type", "503"),
                ]
            )
            #expect(duration.values == [2_000_000_000])
            #expect(metrics.counterTotal(label: "holdfast.body.bytes") == 3)
            #expect(metrics.counterTotal(label: "holdfast.cache.stored") == 1)
            let hits = try metrics.expectCounter("holdfast.cache.decisions", [("outcome", "hit"), ("reason", "fresh")])
            #expect(hits.totalValue == 2)
        }

        @Test("The label names of a metric never change, because Prometheus clients refuse that")
        func constantNames() async throws {
            let bench = ObservedPipeline([
                .respond(200), .respond(404), .fail(.certificate, progress: .notSent), .respond(503), .respond(200),
            ])
            for number in 0..<4 { _ = try? await bench.get("https://example.com/\(number)") }
            let metrics = bench.metrics
            var names: [String: Set<[String]>] = [:]
            for timer in metrics.timers { names[timer.label, default: []].insert(timer.dimensions.map(\.0)) }
            for counter in metrics.counters { names[counter.label, default: []].insert(counter.dimensions.map(\.0)) }
            #expect(names["http.client.request.duration"] != nil)
            for (label, names) in names { #expect(names.count == 1, "\(label)") }
        }

        @Test("error.type is the status if the error says no more than that, or else the error's code")
        func errorTypes() {
            let refused = ServiceError.Code.unacceptableStatus.description
            #expect(Labels.errorType(.serviceUnavailable, code: refused) == "503")
            #expect(Labels.errorType(.serviceUnavailable, code: "timeout") == "timeout")
            #expect(Labels.errorType(.serviceUnavailable, code: nil) == "503")
            #expect(Labels.errorType(nil, code: refused) == refused)
            #expect(Labels.errorType(.ok, code: nil) == nil)
        }

        @Test("A label has at most 255 bytes, and there are at most as many as the limit")
        func labelBound() {
            let bound = LabelBound(limit: 2)
            let longest = String(repeating: "x", count: 255)
            #expect(bound.label(longest) == longest)
            #expect(bound.label(longest + "x") == Labels.other)
            #expect(bound.label("a") == "a")
            #expect(bound.label("b") == Labels.other)
            #expect(bound.label("") == Labels.none)
        }

        @Test("Stopped retries are counted by reason, and an invalid status is not recorded")
        func stopped() async throws {
            let bench = ObservedPipeline([.fail(.certificate, progress: .notSent)])
            _ = try? await bench.get("https://example.com/a")
            let stops = try bench.metrics.expectCounter(
                "holdfast.retry.decisions",
                [("class", "never"), ("stop_reason", "not-retryable")]
            )
            #expect(stops.totalValue == 1)
            #expect(bench.metrics.counterTotal(label: "holdfast.waits") == 0)
            #expect(Labels.status(StatusCode(rawValue: 42)) == 0)
            #expect(Labels.status(StatusCode(rawValue: 599)) == 599)
        }

        @Test(
            "An operation without a name has no label, because Prometheus reads an empty label as a missing one",
            arguments: [nil, ""]
        )
        func unnamed(_ name: String?) throws {
            let metrics = TestMetrics()
            var event = ServiceEvent(
                .callEnded,
                callID: CallID(number: 1),
                timestamp: Timestamp(secondsSinceEpoch: 0)
            )
            event.subject = CallSubject(method: .get, url: nil, operationName: name)
            PipelineObserver(metrics: metrics).observe(event)
            #expect(metrics.counters.map { $0.dimensions.first { $0.0 == "operation" }?.1 } == ["none"])
        }

        @Test("Ten thousand hosts, methods, operations and codes create no more series than the bounds allow")
        func bounded() throws {
            let metrics = TestMetrics()
            let observer = PipelineObserver(metrics: metrics)
            let names: [ServiceEvent.Name] = [
                .callEnded, .attemptEnded, .retriesStopped, .gateClosed, .circuitOpened, .bodyEnded, .responseNotStored,
            ]
            for number in 0..<10_000 {
                var event = ServiceEvent(
                    names[number % names.count],
                    callID: CallID(number: UInt64(number)),
                    timestamp: Timestamp(secondsSinceEpoch: 0)
                )
                let url = try #require(URL(string: "https://host\(number).example:\(number % 60_000 + 1)/"))
                event.subject = CallSubject(
                    method: RequestMethod(rawValue: "M\(number)"),
                    url: RedactedURL(url),
                    operationName: "op\(number)"
                )
                event.status = StatusCode(rawValue: number % 2 == 0 ? 200 : 100_000 + number)
                event.delay = .seconds(1)
                event.stopReason = StopReason(rawValue: "reason\(number)")
                event.notStoredReason = CacheReason(code: "code\(number)")
                observer.observe(event)
            }
            let hosts = 65
            let series = metrics.counters.count + metrics.timers.count + metrics.recorders.count
            // Of each series a bounded label, and of calls and attempts two outcomes beside.
            let bound = 2 * 65 + 65 + 2 * hosts + 2 * hosts + 129 + hosts + 2 * hosts + 2 * hosts + 129
            #expect(series <= bound, "\(series) series")
            #expect(series == observer.metrics?.series.count)
            for label in ["http.client.request.duration", "holdfast.attempts", "holdfast.gate.closings"] {
                let values =
                    metrics.timers.filter { $0.label == label }.map(\.dimensions)
                    + metrics.counters.filter { $0.label == label }.map(\.dimensions)
                let addresses = Set(values.flatMap { $0 }.filter { $0.0 == "server.address" }.map(\.1))
                #expect(addresses.count <= 65)
                #expect(addresses.contains("_OTHER"))
            }
        }

        @Test("One handler is made for each series, however many tasks count at once")
        func handlersAreKept() async {
            let metrics = TestMetrics()
            let table = SeriesTable(metrics)
            await withTaskGroup(of: Void.self) { group in
                for task in 0..<8 {
                    group.addTask {
                        for number in 0..<200 { table.count("a", labels: ["b"], values: ["\((number + task) % 10)"]) }
                    }
                }
            }
            #expect(metrics.counters.count == 10)
            #expect(table.count == 10)
            #expect(metrics.counterTotal(label: "a") == 1600)
        }

        @Test("A wait for another process is counted with its length")
        func fill() throws {
            let metrics = TestMetrics()
            let start = Timestamp(secondsSinceEpoch: 0)
            var event = ServiceEvent(.fillAwaited, callID: CallID(number: 1), timestamp: start)
            event.delay = .seconds(2)
            PipelineObserver(metrics: metrics).observe(event)
            #expect(try metrics.expectCounter("holdfast.waits", [("kind", "fill")]).totalValue == 1)
            #expect(try metrics.expectTimer("holdfast.wait.duration", [("kind", "fill")]).values == [2_000_000_000])
        }
    }
#endif
