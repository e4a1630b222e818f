// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation
public import HoldfastSemantics

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// What went wrong with a call, how far it had come, and what to do next.
public struct ServiceError: LocalizedError, Sendable, CustomStringConvertible {
    /// The kind of failure; new ones may be added.
    public struct Code: Sendable, Hashable, CustomStringConvertible {
        /// A short stable word, fit for a metric label.
        public let description: String

        private init(_ description: String) {
            self.description = description
        }

        /// The request cannot be sent as it is: no URL, a bad URL, a body that cannot be read.
        public static let badRequest = Code("bad-request")
        /// The host name could not be resolved.
        public static let resolve = Code("resolve")
        /// No connection could be made.
        public static let connect = Code("connect")
        /// An attempt took longer than it may.
        public static let timeout = Code("timeout")
        /// The call's deadline passed.
        public static let deadlineExceeded = Code("deadline-exceeded")
        /// TLS failed for a reason that may pass.
        public static let tls = Code("tls")
        /// The peer's certificate was refused.
        public static let certificate = Code("certificate")
        /// The connection broke.
        public static let connectionLost = Code("connection-lost")
        /// The peer's answer was not HTTP.
        public static let protocolError = Code("protocol-error")
        /// The machine is offline.
        public static let offline = Code("offline")
        /// The server asked for less, and for longer than the call may wait: nothing was sent.
        public static let throttled = Code("throttled")
        /// Most attempts at the origin failed, so nothing is sent there for a while; ``ServiceError/retryAfter`` says how long.
        public static let circuitOpen = Code("circuit-open")
        /// As many exchanges are in fetch as may be, and as many wait: nothing was sent.
        public static let tooManyInFlight = Code("too-many-in-flight")
        /// The body exceeds a limit.
        public static let bodyTooLarge = Code("body-too-large")
        /// The redirect chain exceeds its limit.
        public static let tooManyRedirects = Code("too-many-redirects")
        /// The status is not one that the caller accepts.
        public static let unacceptableStatus = Code("unacceptable-status")
        /// What is to be sent cannot be encoded: nothing was sent.
        public static let encodingFailed = Code("encoding-failed")
        /// The content of the response cannot be decoded.
        public static let decodingFailed = Code("decoding-failed")
        /// The server asks for credentials in a way this transport cannot answer.
        public static let authenticationRequired = Code("authentication-required")
        /// The credential is missing or refused, and refreshing it failed.
        public static let authorizationFailed = Code("authorization-failed")
        /// This platform or transport cannot do what was asked.
        public static let unsupported = Code("unsupported")
        /// Nothing usable is stored, and loading was forbidden.
        public static let resourceUnavailable = Code("resource-unavailable")
        /// Anything else; the cause tells.
        public static let other = Code("other")
    }

    /// The kind of failure.
    public var code: Code
    /// What happened and what to do next, for people; bears no credentials.
    public var message: String
    /// The underlying error, whole.
    public var cause: (any Error)?
    /// How far the exchange had come; nil when it did not get as far as a transport.
    public var progress: TransportProgress?
    /// Whether the connection had carried an exchange before.
    public var connectionReused: Bool
    /// The response the call ended with, if there was one, body unread.
    public var response: Response?
    /// Every attempt of the call, in order.
    public var attempts: [AttemptRecord]
    /// How long to leave the server alone, counted from the error's birth: what it asked for, or until its circuit lets a
    /// probe through; nil where neither says anything.
    ///
    /// A queue can come back after it; asking earlier is in vain (RFC 9110 §10.2.3).
    public var retryAfter: Duration?

    /// An error of this kind.
    public init(
        _ code: Code,
        _ message: String,
        cause: (any Error)? = nil,
        progress: TransportProgress? = nil,
        connectionReused: Bool = false,
        response: Response? = nil
    ) {
        self.code = code
        self.message = message
        self.cause = cause
        self.progress = progress
        self.connectionReused = connectionReused
        self.response = response
        attempts = []
    }

    public var description: String {
        "\(code): \(message)" + (cause.map { " (\(ServiceError.text(of: $0)))" } ?? "")
    }

    /// The text of a cause; of Foundation's errors without what they say of the URL, which may bear credentials.
    private static func text(of cause: any Error) -> String {
        guard cause is URLError || type(of: cause) is NSError.Type else { return "\(cause)" }
        let error = cause as NSError
        let words = error.userInfo[NSLocalizedDescriptionKey] as? String
        return "\(error.domain) \(error.code)" + (words.map { ": \($0)" } ?? "")
    }

    public var errorDescription: String? { message }

    /// The failure as the rules of retrying see it.
    ///
    /// An error that is no ``ServiceError`` says nothing of its progress, so it counts as if all had been sent.
    static func attemptFailure(of error: any Error) -> AttemptFailure {
        guard let error = error as? ServiceError else {
            return AttemptFailure(kind: .other, progress: .bodySent, connectionReused: false)
        }
        var failure = AttemptFailure(
            kind: kinds[error.code] ?? .other,
            progress: error.progress ?? .bodySent,
            connectionReused: error.connectionReused
        )
        failure.retryAfter = error.retryAfter
        return failure
    }

    private static let kinds: [Code: AttemptFailure.Kind] = [
        .badRequest: .badRequest, .resolve: .resolve, .connect: .connect, .timeout: .timeout,
        .deadlineExceeded: .timeout, .tls: .tls, .certificate: .certificate, .connectionLost: .connectionLost,
        .protocolError: .protocolError, .offline: .offline, .bodyTooLarge: .tooLarge,
        .throttled: .throttled, .tooManyRedirects: .badRequest, .resourceUnavailable: .badRequest,
        .circuitOpen: .heldBack, .tooManyInFlight: .heldBack,
        .authenticationRequired: .badRequest, .authorizationFailed: .badRequest, .unsupported: .badRequest,
        .encodingFailed: .badRequest, .decodingFailed: .protocolError,
    ]
}
