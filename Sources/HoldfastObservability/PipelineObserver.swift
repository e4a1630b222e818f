// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Observability
    public import Holdfast
    public import Logging
    public import Metrics
    public import Tracing

    /// Logs, counts and traces calls, with swift-log, swift-metrics and swift-distributed-tracing.
    ///
    /// `configuration.observe(with: PipelineObserver(logger: logger))` installs all of it. One observer may serve any number of
    /// pipelines; the limits on labels apply to all of them together. It can be used from any number of tasks, and no call ever
    /// waits for it.
    public struct PipelineObserver: EventObserver {
        /// What it reports and shows.
        public let options: ObserverOptions

        let log: EventLog?
        let metrics: EventMetrics?
        let tracing: CallTracing?

        /// Creates an observer.
        ///
        /// - Parameters:
        ///   - logger: logs decisions, retries and failures; nil, the default: no logs.
        ///   - metrics: makes the metrics; nil, the default: the factory that `MetricsSystem` was bootstrapped with.
        ///   - tracer: makes the spans; nil, the default: the one of `InstrumentationSystem`, looked up at each call.
        ///   - options: what to report, at which levels, and what to show.
        public init(
            logger: Logger? = nil,
            metrics: (any MetricsFactory)? = nil,
            tracer: (any Tracer)? = nil,
            options: ObserverOptions = ObserverOptions()
        ) {
            self.options = options
            log = options.parts.contains(.logs) ? logger.map { EventLog($0, options: options) } : nil
            self.metrics =
                options.parts.contains(.metrics)
                ? EventMetrics(metrics ?? MetricsSystem.factory, options: options) : nil
            tracing = options.parts.contains(.traces) ? CallTracing(tracer, options: options) : nil
        }

        public func observe(_ event: ServiceEvent) {
            log?.write(event)
            metrics?.count(event)
            tracing?.note(event)
        }
    }

    extension PipelineConfiguration {
        /// Installs an observer: as an observer of events and, if it traces, around calls and sends.
        public mutating func observe(with observer: PipelineObserver) {
            observers.append(observer)
            if let tracing = observer.tracing { interceptors.append(tracing) }
        }
    }
#endif
