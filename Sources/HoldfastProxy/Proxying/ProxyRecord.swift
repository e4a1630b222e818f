// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    public import Holdfast
    public import HoldfastSemantics
    internal import HoldfastStorage
    internal import NIOCore

    /// One request and its response, for logs; reported when the response was delivered, or has failed.
    public struct ProxyRecord: Sendable {
        /// The method as it arrived; nil if none could be read.
        public let method: RequestMethod?
        /// The target as it arrived; it may contain credentials, and quotation marks. Nil if none could be read.
        public let target: String?
        /// The client's HTTP version, such as `1.1`.
        public let version: String
        /// The address of the client, without its port; nil if it has none.
        public let clientAddress: String?
        /// The User-Agent and the Referer of the request.
        public let userAgent: String?
        public let referer: String?
        /// The status of the response; 499 if the client left before its head, of which then nothing was sent.
        public let status: StatusCode
        /// How many bytes of its body were passed to the connection.
        public internal(set) var bodyBytes = 0
        /// Whether that is all of the body; false if the origin failed or the client left.
        public internal(set) var isComplete = true
        /// What the cache did; nil if there is none.
        public let decision: CacheDecision?
        /// Where the response came from.
        public let source: ResponseSource
        /// How many times the origin was asked; 0 if another request's exchange answered this one, or if the client left before the
        /// head.
        public let attempts: Int
        /// How long the origin took to respond, all attempts together; nil if it was not asked for this request.
        public let originDuration: Duration?
        /// When the head of the response was ready, and how long that took.
        public let start: Timestamp
        public let duration: Duration
        /// Why the request was refused before it could be handled: it is malformed or too large, came too slowly, or
        /// there are too many connections. Nil for all other requests.
        public internal(set) var refusal: String?
    }

    extension ProxyRecord {
        /// The record of a request that the server refused.
        init(_ refused: RefusedRequest, start: Timestamp) {
            self.init(
                method: refused.method,
                target: refused.target,
                version: refused.version,
                clientAddress: refused.clientAddress,
                userAgent: nil,
                referer: nil,
                status: refused.status,
                bodyBytes: refused.bodyBytes,
                decision: nil,
                source: .synthesized,
                attempts: 0,
                originDuration: nil,
                start: start,
                duration: .zero,
                refusal: refused.reason
            )
        }

        init(
            _ request: ProxiedRequest,
            answer response: Response,
            start: Timestamp,
            begun: MonotonicInstant,
            now: MonotonicInstant
        ) {
            // Those of another request's exchange are in that one's record.
            let attempts = response.source == .collapsed ? [] : response.attempts
            let asked = response.source.isFromOrigin || response.source == .synthesized || response.source == .stale
            self.init(
                method: request.method,
                target: request.target,
                version: request.version,
                clientAddress: request.clientAddress,
                userAgent: request.fields[.userAgent],
                referer: request.fields[.referer],
                status: response.status,
                decision: response.cacheDecision,
                source: response.source,
                attempts: response.source.isFromOrigin ? max(1, attempts.count) : attempts.count,
                originDuration: asked && !attempts.isEmpty
                    ? attempts.reduce(.zero) { $0 + $1.start.duration(to: $1.end) } : nil,
                start: start,
                duration: begun.duration(to: now)
            )
        }
    }

    extension ResponseSource {
        /// Whether the origin was asked and its response forwarded.
        fileprivate var isFromOrigin: Bool {
            switch self {
            case .network, .revalidated: true
            case .fresh, .stale, .collapsed, .inProcess, .synthesized: false
            }
        }
    }

    /// A failure for a log: one line without line breaks.
    public struct ProxyFailure: Sendable, Hashable {
        /// Where the failure was.
        public enum Kind: String, Sendable, Hashable, CaseIterable {
            /// The origin could not be reached, did not respond, or was interrupted; the text has the cause.
            case origin
            /// A request was refused: by the rules, or because it could not be parsed.
            case request
            /// A connection was refused or could not be accepted: too many, or no descriptors left.
            case connection
            /// The store failed: a full disk, a Redis that cannot be reached.
            case store
        }

        /// Where the failure was.
        public let kind: Kind
        /// What happened, and the cause as the system reports it; at most 1,024 characters, without control characters.
        public let text: String
        /// The address of the client, without its port, if there is one.
        public let clientAddress: String?

        /// Creates a failure; characters that are not allowed in a line are replaced.
        public init(_ kind: Kind, text: String, clientAddress: String? = nil) {
            self.kind = kind
            self.text = String(
                String.UnicodeScalarView(
                    text.unicodeScalars.prefix(1_024).map {
                        $0.properties.generalCategory == .control ? "?" : $0
                    }
                )
            )
            self.clientAddress = clientAddress
        }

        /// A request that cannot be parsed, or asks for what the server does not do.
        init(rejecting fault: MessageFault, from address: SocketAddress?) {
            self.init(
                .request,
                text: "a request was rejected with \(fault.status): \(fault.message)",
                clientAddress: address?.ipAddress
            )
        }
    }
#endif
