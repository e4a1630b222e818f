// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Observability
    public import Holdfast
    public import Logging
    public import Metrics
    public import Tracing

    /// Logs, counts and traces what happens to calls, through swift-log, swift-metrics and swift-distributed-tracing.
    ///
    /// `configuration.observe(with: PipelineObserver(logger: logger))` installs all of it. One observer may serve any number of
    /// pipelines; the metrics' labels are bounded for all of them together. Safe to use from any number of tasks; no call ever
    /// waits for it.
    public struct PipelineObserver: EventObserver {
        /// What it does and what it shows.
        public let options: ObserverOptions

        let log: EventLog?
        let metrics: EventMetrics?
        let tracing: CallTracing?

        /// An observer.
        ///
        /// - Parameters:
        ///   - logger: where decisions, retries and failures are written; nil, the default: nowhere.
        ///   - metrics: makes the metrics; nil, the default: the one that `MetricsSystem` was bootstrapped with by then.
        ///   - tracer: makes the spans; nil, the default: the one of `InstrumentationSystem`, asked at each call.
        ///   - options: which parts, at which levels, and what is shown.
        public init(
            logger: Logger? = nil,
            metrics: (any MetricsFactory)? = nil,
            tracer: (any Tracer)? = nil,
            options: ObserverOptions = ObserverOptions()
        ) {
            self.options = options
            log = options.parts.contains(.logs) ? logger.map { EventLog($0, options) } : nil
            self.metrics =
                options.parts.contains(.metrics) ? EventMetrics(metrics ?? MetricsSystem.factory, options) : nil
            tracing = options.parts.contains(.traces) ? CallTracing(tracer, options) : nil
        }

        public func observe(_ event: ServiceEvent) {
            log?.write(event)
            metrics?.count(event)
            tracing?.note(event)
        }
    }

    extension PipelineConfiguration {
        /// Installs an observer: as an observer of events, and around calls and sends where it traces.
        public mutating func observe(with observer: PipelineObserver) {
            observers.append(observer)
            if let tracing = observer.tracing { interceptors.append(tracing) }
        }
    }
#endif
