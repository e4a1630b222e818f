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

    /// What a ``PipelineObserver`` reports and shows.
    public struct ObserverOptions: Sendable {
        /// The parts of an observer.
        public struct Parts: OptionSet, Sendable {
            public let rawValue: UInt8

            public init(rawValue: UInt8) {
                self.rawValue = rawValue
            }

            /// Log records; none without a logger.
            public static let logs = Parts(rawValue: 1)
            /// Metrics.
            public static let metrics = Parts(rawValue: 2)
            /// Spans, and the trace's fields in outgoing requests.
            public static let traces = Parts(rawValue: 4)
            /// All of them.
            public static let all: Parts = [.logs, .metrics, .traces]
        }

        /// What to report; all by default.
        public var parts: Parts = .all

        /// The level of decisions and endings: what a cache did, that a call ended; `.debug` by default. Events that something
        /// began are logged one level lower.
        public var decisionLevel: Logger.Level = .debug
        /// The level of retries, hedges, waits and resumed bodies; `.notice` by default.
        public var retryLevel: Logger.Level = .notice
        /// The level of failures that a call may survive: retries that stopped, a store that failed; `.warning` by default.
        public var troubleLevel: Logger.Level = .warning
        /// The level of calls that ended with an error other than cancellation; `.error` by default.
        public var failureLevel: Logger.Level = .error

        /// Whether log records contain the URL, with its path and without credentials; false by default, which logs only the
        /// host.
        public var logsURLs = false
        /// Names of query arguments whose values contain no credential and are shown in log records and spans; none by default.
        public var shownArguments: Set<String> = []

        /// How many hosts, with their ports, have their own labels in metrics; further ones are `_OTHER`; 64 by default.
        public var maximumHosts = 64
        /// How many operation names have their own labels in metrics; further ones are `_OTHER`; 64 by default.
        public var maximumOperations = 64

        /// Creates the default options.
        public init() {}
    }
#endif
