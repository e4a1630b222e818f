// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Observability
    import Foundation
    import Holdfast
    import HoldfastObservability
    import HoldfastTesting
    import InMemoryLogging
    import InMemoryTracing
    import Logging
    import MetricsTestKit
    import Testing
    import Tracing

    #if canImport(FoundationNetworking)
        import FoundationNetworking
    #endif

    /// Lets tests wait until calls have begun and sends have ended, their spans included.
    final class Progress: CallInterceptor {
        let calls = CountWatch()
        let sends = CountWatch()

        func interceptCall(
            _ request: URLRequest,
            context: CallContext,
            proceed: () async throws -> Response
        ) async throws -> Response {
            calls.increment()
            return try await proceed()
        }

        func interceptSend(
            _ request: URLRequest,
            context: CallContext,
            proceed: (URLRequest) async throws -> Response
        ) async throws -> Response {
            defer { sends.increment() }
            return try await proceed(request)
        }
    }

    /// A pipeline over a script, with everything that it tells kept in memory.
    struct ObservedPipeline {
        let clock: ManualClock
        let transport: ScriptedTransport
        let logs = InMemoryLogHandler()
        let metrics = TestMetrics()
        let tracer = InMemoryTracer()
        let pipeline: Pipeline
        let observer: PipelineObserver
        let progress = Progress()

        init(
            _ steps: [ScriptedTransport.Step] = [.respond()],
            transport: ScriptedTransport? = nil,
            cache: HTTPCache? = nil,
            retrierFactory: any RetrierFactory = .default,
            hooks: [any ServiceHook] = [],
            options: ObserverOptions = ObserverOptions(),
            clock: ManualClock = ManualClock(autoAdvances: true)
        ) {
            self.clock = clock
            self.transport = transport ?? ScriptedTransport(steps, repeatsLastStep: true)
            var logger = Logger(label: "holdfast") { [logs] _ in logs }
            logger.logLevel = .trace
            observer = PipelineObserver(logger: logger, metrics: metrics, tracer: tracer, options: options)
            var configuration = PipelineConfiguration()
            configuration.clock = clock
            configuration.interceptors = [progress]
            configuration.observe(with: observer)
            pipeline = Pipeline(
                transport: self.transport,
                cache: cache,
                retrierFactory: retrierFactory,
                hooks: hooks,
                configuration: configuration
            )
        }

        /// Sends and reads the body to its end.
        @discardableResult
        func get(_ text: String, operation: String? = nil, fields: [String: String] = [:]) async throws -> Response {
            var request = URLRequest(url: try #require(URL(string: text)))
            request.allHTTPHeaderFields = fields
            var options = CallOptions()
            options.operationName = operation
            let response = try await pipeline.send(request, options: options)
            _ = try await response.body.collect()
            return response
        }

        var spans: [FinishedInMemorySpan] { tracer.finishedSpans }

        func spans(_ kind: SpanKind) -> [FinishedInMemorySpan] { spans.filter { "\($0.kind)" == "\(kind)" } }

        /// The text of everything that was logged and traced, and of every label.
        var everything: String {
            var text = ""
            for entry in logs.entries {
                text += "\(entry.level) \(entry.message) \(entry.metadata)\n"
                if let error = entry.error { text += "\(error)\n" }
            }
            for span in spans {
                text += "\(span.operationName) \(String(describing: span.status)) "
                span.attributes.forEach { name, value in text += "\(name)=\(value) " }
                for event in span.events {
                    text += event.name
                    event.attributes.forEach { name, value in text += "\(name)=\(value) " }
                }
                for error in span.errors { text += "\(error.error)\n" }
            }
            for counter in metrics.counters { text += "\(counter.label) \(counter.dimensions)\n" }
            for timer in metrics.timers { text += "\(timer.label) \(timer.dimensions)\n" }
            for recorder in metrics.recorders { text += "\(recorder.label) \(recorder.dimensions)\n" }
            return text
        }
    }
#endif
