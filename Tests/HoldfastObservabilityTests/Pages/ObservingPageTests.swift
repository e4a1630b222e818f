// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Observability
    import Foundation
    import Holdfast
    import HoldfastObservability
    import HoldfastTesting
    import InMemoryLogging
    import Logging
    import MetricsTestKit
    import Synchronization
    import Testing

    #if canImport(FoundationNetworking)
        import FoundationNetworking
    #endif

    /// The examples of docs/operating/observing.md.
    @Suite(.timeLimit(.minutes(20))) struct ObservingPageTests {
        private func request() throws -> URLRequest {
            URLRequest(url: try #require(URL(string: "https://example.com/?key=x")))
        }

        @Test("A custom observer")
        func observer() async throws {
            let counter = RetryCounter()
            var configuration = PipelineConfiguration()
            configuration.clock = ManualClock(autoAdvances: true)
            configuration.observers = [counter]
            let pipeline = Pipeline(
                transport: ScriptedTransport([.respond(503), .respond()]),
                retrierFactory: .default,
                configuration: configuration
            )
            _ = try await pipeline.send(try request())
            #expect(counter.count.load(ordering: .relaxed) == 1)
        }

        @Test("A stream of events")
        func stream() async throws {
            let transport = ScriptedTransport([.respond()])
            let request = try request()
            let stream = EventStream(limit: 500, names: [.callEnded, .retryScheduled])
            var configuration = PipelineConfiguration()
            configuration.observers.append(stream)
            let pipeline = Pipeline(transport: transport, configuration: configuration)

            var options = CallOptions()
            options.operationName = "getForecast"
            _ = try await pipeline.send(request, options: options)
            stream.finish()

            for await event in stream.events {
                print(event.name, event.url?.description ?? "", event.operationName ?? "", event.errorCode ?? "")
            }
            #expect(stream.droppedCount == 0)
        }

        @Test("One line")
        func oneLine() async throws {
            var configuration = PipelineConfiguration()
            configuration.observe(with: PipelineObserver(logger: Logger(label: "weather")))
            #expect(configuration.observers.count == 1)
            #expect(configuration.interceptors.count == 1)
            let pipeline = Pipeline(transport: ScriptedTransport([.respond()]), configuration: configuration)
            #expect(try await pipeline.send(try request()).status == .ok)
        }

        @Test("Parts and bounds")
        func parts() async throws {
            let handler = InMemoryLogHandler()
            var logger = Logger(label: "weather") { _ in handler }
            logger.logLevel = .debug
            let metrics = TestMetrics()
            var options = ObserverOptions()
            options.parts = [.logs, .metrics]
            options.logsURLs = true
            options.shownArguments = ["page", "units"]
            options.maximumHosts = 16
            let observer = PipelineObserver(logger: logger, metrics: metrics, options: options)
            var configuration = PipelineConfiguration()
            configuration.observe(with: observer)
            #expect(configuration.interceptors.isEmpty)
            let pipeline = Pipeline(transport: ScriptedTransport([.respond()]), configuration: configuration)
            _ = try await pipeline.send(try request())
            #expect(handler.entries.last?.metadata["url"] == "https://example.com/?key=REDACTED")
            #expect(metrics.counterTotal(label: "holdfast.calls") == 1)
        }

        @Test("A reporter")
        func reporter() async throws {
            let cache = HTTPCache.inMemory()
            let governor = RetryGovernor()
            let origin = try #require(URL(string: "https://example.com"))
            let metrics = TestMetrics()
            let clock = ManualClock()
            let reporter = MetricsReporter(
                caches: ["weather": cache],
                governors: ["weather": governor],
                origins: [origin],
                metrics: metrics,
                clock: clock
            )
            reporter.collect()
            let reporting = Task { await reporter.run(every: .seconds(15)) }
            reporting.cancel()
            await reporting.value
            #expect(metrics.recorders.contains { $0.label == "holdfast.store.size" })
        }
    }

    final class RetryCounter: EventObserver {
        let count = Atomic<Int>(0)

        func observe(_ event: ServiceEvent) {
            if event.name == .retryScheduled { count.add(1, ordering: .relaxed) }
        }
    }
#endif
