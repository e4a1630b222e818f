// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Observability
    internal import Holdfast
    internal import HoldfastSemantics
    private import Synchronization

    /// The texts of labels and attributes.
    enum Labels {
        /// Replaces anything without a label of its own, as in OpenTelemetry.
        static let other = "_OTHER"
        /// Used if there is nothing to report.
        static let none = "none"

        /// The methods that OpenTelemetry knows: those of RFC 9110, PATCH, and QUERY (RFC 10008).
        static let methods: Set<String> = [
            "CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "QUERY", "TRACE",
        ]

        static func method(_ method: RequestMethod?) -> String {
            guard let method, methods.contains(method.rawValue) else { return other }
            return method.rawValue
        }

        /// The number of a status; 0 if it is invalid.
        static func status(_ status: StatusCode) -> Int {
            (100...599).contains(status.rawValue) ? status.rawValue : 0
        }

        static func statusText(_ status: StatusCode?) -> String { status.map { String(Labels.status($0)) } ?? none }

        static func retryClass(_ retryClass: RetryClass?) -> String {
            switch retryClass {
            case .unprocessed: "unprocessed"
            case .staleSocket: "stale-socket"
            case .ambiguous: "ambiguous"
            case .throttled: "throttled"
            case .never: "never"
            case nil: none
            }
        }

        static func progress(_ progress: TransportProgress) -> String {
            switch progress {
            case .notSent: "not-sent"
            case .headSent: "head-sent"
            case .bodySent: "body-sent"
            case .headReceived: "head-received"
            case .bytesReceived: "bytes-received"
            }
        }

        /// How a call or an attempt ended, for `error.type`: the status from 400 on, or the code of the error.
        static func errorType(_ status: StatusCode?, code errorCode: String?) -> String? {
            if let errorCode, errorCode != ServiceError.Code.unacceptableStatus.description || status == nil {
                return errorCode
            }
            guard let status, status.rawValue >= 400 else { return errorCode }
            return String(Labels.status(status))
        }
    }

    /// Labels that come from outside, up to a limit.
    final class LabelBound: Sendable {
        private let known: Mutex<Set<String>>
        private let limit: Int

        init(limit: Int) {
            self.limit = max(limit, 0)
            known = Mutex([])
        }

        /// The text itself, while there is room, or `_OTHER`.
        func label(_ text: String?) -> String {
            guard let text, !text.isEmpty else { return Labels.none }
            // A label of any length would not be limited after all.
            guard text.utf8.count <= 255 else { return Labels.other }
            return known.withLock { known in
                if known.contains(text) { return text }
                guard known.count < limit else { return Labels.other }
                known.insert(text)
                return text
            }
        }
    }

    extension Duration {
        var inSeconds: Double {
            Double(components.seconds) + Double(components.attoseconds) / 1e18
        }

        var inNanoseconds: Int64 {
            let (seconds, overflows) = components.seconds.multipliedReportingOverflow(by: 1_000_000_000)
            if overflows { return components.seconds < 0 ? .min : .max }
            let (sum, overflowsToo) = seconds.addingReportingOverflow(components.attoseconds / 1_000_000_000)
            return overflowsToo ? (seconds < 0 ? .min : .max) : sum
        }
    }
#endif
