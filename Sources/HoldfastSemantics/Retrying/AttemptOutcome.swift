// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// How far an attempt came before it failed: what the failure proves rests on it (RFC 9110 §9.2.2).
public enum TransportProgress: UInt8, Sendable, Hashable, Comparable {
    /// No byte of the request left this machine: also where it waited in vain for a connection of the pool, and where a
    /// proxy made no tunnel.
    case notSent
    /// The request's head, or a part of it, was sent.
    case headSent
    /// The request's content was sent too.
    case bodySent
    /// The response's head came.
    case headReceived
    /// Bytes of the response's content came.
    case bytesReceived

    /// Whether the left one is the earlier stage.
    public static func < (left: TransportProgress, right: TransportProgress) -> Bool {
        left.rawValue < right.rawValue
    }
}

/// Why an attempt ended without a whole response.
public struct AttemptFailure: Error, Sendable, Hashable {
    /// The kind of failure.
    public struct Kind: RawRepresentable, Sendable, Hashable {
        /// The stable code, fit for metric labels.
        public let rawValue: String

        /// Creates a kind from its stable code.
        public init(rawValue: String) {
            self.rawValue = rawValue
        }

        /// The host name could not be resolved.
        public static let resolve = Kind(rawValue: "resolve")
        /// No connection could be made.
        public static let connect = Kind(rawValue: "connect")
        /// A time limit passed.
        public static let timeout = Kind(rawValue: "timeout")
        /// The TLS handshake failed, not because of a certificate.
        public static let tls = Kind(rawValue: "tls")
        /// A certificate was refused.
        public static let certificate = Kind(rawValue: "certificate")
        /// The connection broke.
        public static let connectionLost = Kind(rawValue: "connection-lost")
        /// The peer said by its protocol that it did not and will not process the request: REFUSED_STREAM or a GOAWAY that
        /// leaves it out (RFC 9113 §8.7), H3_REQUEST_REJECTED (RFC 9114 §4.1.1).
        public static let refused = Kind(rawValue: "refused")
        /// The peer did not speak HTTP as it should.
        public static let protocolError = Kind(rawValue: "protocol-error")
        /// The request itself cannot be sent, such as a bad URL; a local fault.
        public static let badRequest = Kind(rawValue: "bad-request")
        /// The response exceeds a limit set here.
        public static let tooLarge = Kind(rawValue: "too-large")
        /// The machine has no network.
        public static let offline = Kind(rawValue: "offline")
        /// The server asked for less by an earlier response, so that nothing was sent.
        public static let throttled = Kind(rawValue: "throttled")
        /// An open circuit or a limit on this side held it back, so that nothing was sent.
        public static let heldBack = Kind(rawValue: "held-back")
        /// The caller cancelled.
        public static let cancelled = Kind(rawValue: "cancelled")
        /// Anything else.
        public static let other = Kind(rawValue: "other")
    }

    /// The kind of failure.
    public let kind: Kind

    /// How far the attempt came; the transport must not claim too little.
    public let progress: TransportProgress

    /// Whether the connection had served an earlier request.
    public let connectionReused: Bool

    /// How long another attempt would be in vain, counted from the failure, as an open circuit says; nil where nobody knows.
    public var retryAfter: Duration?

    /// Creates a failure.
    ///
    /// - Parameters:
    ///   - kind: what happened.
    ///   - progress: how far the attempt came.
    ///   - connectionReused: whether the connection was used before; false by default.
    public init(kind: Kind, progress: TransportProgress, connectionReused: Bool = false) {
        self.kind = kind
        self.progress = progress
        self.connectionReused = connectionReused
    }
}

/// How one attempt ended.
public enum AttemptOutcome: Sendable, Hashable {
    /// A response head came.
    case response(ResponseHead)
    /// None came, or the exchange broke after it.
    case failure(AttemptFailure)

    /// Whether it says that the server, or the way to it, is in trouble: what budgets count as a failure.
    ///
    /// An answer that would be the same again is none, because the server did its work; nor is what never left this machine
    /// because of a rule here, or for want of a network.
    public var isServerTrouble: Bool { sign == .trouble }

    /// What an attempt's end tells about the server. Budgets, circuits and hedges all go by it, each in its own way.
    package enum Sign: Sendable, Hashable {
        /// The server did its work, whatever the answer is.
        case success
        /// The server, or the way to it, is in trouble.
        case trouble
        /// Nothing: it was a matter of this side.
        case nothing
    }

    /// What it tells about the server.
    package var sign: Sign {
        switch self {
        case .response(let head):
            switch head.status {
            case .requestTimeout, .tooManyRequests: .trouble
            case .notImplemented, .httpVersionNotSupported, .variantAlsoNegotiates, .insufficientStorage,
                .loopDetected, 510, .networkAuthenticationRequired:
                .success
            default: head.status.isServerError ? .trouble : .success
            }
        case .failure(let failure):
            switch failure.kind {
            case .cancelled, .badRequest, .tooLarge, .certificate, .offline, .throttled, .heldBack: .nothing
            default: .trouble
            }
        }
    }

    /// Whether a retrier is asked about it: any failure, and any status of 400 or above.
    public var isFailure: Bool {
        switch self {
        case .response(let head): head.status.rawValue >= 400
        case .failure: true
        }
    }
}
