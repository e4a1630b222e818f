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
    import Testing

    #if canImport(FoundationNetworking)
        import FoundationNetworking
    #endif

    /// The code of `HoldfastObservability.docc`: article, and the steps from first to last.
    @Suite("Catalog: HoldfastObservability", .timeLimit(.minutes(20)))
    struct HoldfastObservabilityCatalogTests {
        private struct First {
            func makeClient(cache: HTTPCache) -> Pipeline {
                var configuration = PipelineConfiguration()
                configuration.observe(with: PipelineObserver(logger: Logger(label: "weather")))
                return Pipeline(transport: URLSessionTransport(), cache: cache, configuration: configuration)
            }
        }

        func makeClient(cache: HTTPCache) -> Pipeline {
            var options = ObserverOptions()
            options.parts = [.logs, .metrics]
            options.logsURLs = true
            options.shownArguments = ["units"]
            var configuration = PipelineConfiguration()
            configuration.observe(with: PipelineObserver(logger: Logger(label: "weather"), options: options))
            return Pipeline(transport: URLSessionTransport(), cache: cache, configuration: configuration)
        }

        func report(_ cache: HTTPCache) async {
            await MetricsReporter(caches: ["weather": cache]).run(every: .seconds(15))
        }

        @Test("One line")
        func oneLine() {
            var configuration = PipelineConfiguration()
            configuration.observe(with: PipelineObserver(logger: Logger(label: "weather")))
            #expect(configuration.observers.count == 1)
        }

        @Test("Parts, labels, a reporter")
        func parts() async throws {
            let metrics = TestMetrics()
            let logger = Logger(label: "weather") { _ in InMemoryLogHandler() }
            let cache = HTTPCache.inMemory()
            var options = ObserverOptions()
            options.parts = [.logs, .metrics]
            options.shownArguments = ["page"]
            options.maximumHosts = 16
            let observer = PipelineObserver(logger: logger, metrics: metrics, options: options)
            var configuration = PipelineConfiguration()
            configuration.observe(with: observer)
            let client = Pipeline(
                transport: ScriptedTransport([.respond()]),
                cache: cache,
                configuration: configuration
            )
            _ = try await client.send(URLRequest(url: try #require(URL(string: "https://example.com/"))))
            #expect(metrics.counterTotal(label: "holdfast.calls") == 1)
            let reporter = MetricsReporter(caches: ["weather": cache], metrics: metrics)
            reporter.collect()
            #expect(metrics.recorders.contains { $0.label == "holdfast.store.size" })
        }

        @Test("Logs and metrics")
        func tutorial() async {
            let cache = HTTPCache.inMemory()
            #expect(First().makeClient(cache: cache).configuration.interceptors.count == 1)
            #expect(makeClient(cache: cache).configuration.interceptors.isEmpty)
            let reporting = Task { await report(cache) }
            reporting.cancel()
            await reporting.value
        }
    }
#endif
