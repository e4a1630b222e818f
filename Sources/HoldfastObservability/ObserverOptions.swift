// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Observability
    public import Logging

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
