// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// How far an attempt got before it failed; this determines what the failure proves (RFC 9110 §9.2.2).
public enum TransportProgress: UInt8, Sendable, Hashable, Comparable {
    /// No byte of the request left this machine. This includes waiting in vain for a connection from the pool, and a proxy that
    /// made no tunnel.
    case notSent
    /// The request's head, or part of it, was sent.
    case headSent
    /// The request's content was sent too.
    case bodySent
    /// The response's head arrived.
    case headReceived
    /// Bytes of the response's content arrived.
    case bytesReceived

    /// Whether the left stage is the earlier one.
    public static func < (left: TransportProgress, right: TransportProgress) -> Bool {
        left.rawValue < right.rawValue
    }
}

/// Why an attempt ended without a complete response.
public struct AttemptFailure: Error, Sendable, Hashable {
    /// The kind of failure.
    public struct Kind: RawRepresentable, Sendable, Hashable {
        /// The stable code, suitable for metric labels.
        public let rawValue: String

        /// Creates a kind from its stable code.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The host name could not be resolved.
        public static let resolve = Kind(rawValue: "resolve")
        /// No connection could be made.
        public static let connect = Kind(rawValue: "connect")
        /// A time limit passed.
        public static let timeout = Kind(rawValue: "timeout")
        /// The TLS handshake failed for a reason other than a certificate.
        public static let tls = Kind(rawValue: "tls")
        /// A certificate was refused.
        public static let certificate = Kind(rawValue: "certificate")
        /// The connection broke.
        public static let connectionLost = Kind(rawValue: "connection-lost")
        /// The peer said through its protocol that it did not process the request and will not: REFUSED_STREAM or a GOAWAY that
        /// excludes it (RFC 9113 §8.7), H3_REQUEST_REJECTED (RFC 9114 §4.1.1).
        public static let refused = Kind(rawValue: "refused")
        /// The peer violated HTTP.
        public static let protocolError = Kind(rawValue: "protocol-error")
        /// The request itself cannot be sent, for example because of a bad URL; a local error.
        public static let badRequest = Kind(rawValue: "bad-request")
        /// The response exceeds a limit set here.
        public static let tooLarge = Kind(rawValue: "too-large")
        /// The machine has no network.
        public static let offline = Kind(rawValue: "offline")
        /// The server asked for fewer requests in an earlier response, so nothing was sent.
        public static let throttled = Kind(rawValue: "throttled")
        /// An open circuit or a limit on this side held the request back, so nothing was sent.
        public static let heldBack = Kind(rawValue: "held-back")
        /// The caller cancelled.
        public static let cancelled = Kind(rawValue: "cancelled")
        /// Anything else.
        public static let other = Kind(rawValue: "other")
    }

    /// The kind of failure.
    public let kind: Kind

    /// How far the attempt got; the transport must not report too little.
    public let progress: TransportProgress

    /// Whether the connection had served an earlier request.
    public let connectionReused: Bool

    /// How long further attempts would be in vain, counted from the failure, according to an open circuit; nil if unknown.
    public var retryAfter: Duration?

    /// Creates a failure.
    ///
    /// - Parameters:
    ///   - kind: what happened.
    ///   - progress: how far the attempt got.
    ///   - connectionReused: whether the connection was used before; false by default.
    public init(kind: Kind, progress: TransportProgress, connectionReused: Bool = false) {
        self.kind = kind
        self.progress = progress
        self.connectionReused = connectionReused
    }
}

/// How one attempt ended.
public enum AttemptOutcome: Sendable, Hashable {
    /// A response head arrived.
    case response(ResponseHead)
    /// None arrived, or the exchange broke after it.
    case failure(AttemptFailure)

    /// Whether it shows that the server, or the path to it, has a problem; budgets count this as a failure.
    ///
    /// An answer that would be the same again does not count, because the server did its work. Nor does a request that never left
    /// this machine because of a rule here or because there is no network.
    package var isServerTrouble: Bool { serverSucceeded == false }

    /// Whether the server did its work, whatever its answer; false: it, or the path to it, has a problem; nil: the reason was on
    /// this side. Budgets, circuits and hedges use it, each in its own way.
    package var serverSucceeded: Bool? {
        switch self {
        case .response(let head):
            switch head.status {
            case .requestTimeout, .tooManyRequests: false
            case .notImplemented, .httpVersionNotSupported, .variantAlsoNegotiates, .insufficientStorage,
                .loopDetected, 510, .networkAuthenticationRequired:
                true
            default: !head.status.isServerError
            }
        case .failure(let failure):
            switch failure.kind {
            case .cancelled, .badRequest, .tooLarge, .certificate, .offline, .throttled, .heldBack: nil
            default: false
            }
        }
    }

    /// Whether a retrier is asked about it: any failure, and any status of 400 or above.
    package var isFailure: Bool {
        switch self {
        case .response(let head): head.status.rawValue >= 400
        case .failure: true
        }
    }
}
