// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation
public import HoldfastSemantics
public import HoldfastStorage

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// What went wrong with a call, how far it got, and what to do next.
public struct ServiceError: LocalizedError, Sendable, CustomStringConvertible, CustomReflectable {
    /// The kind of failure; more may be added.
    public struct Code: Sendable, Hashable, CustomStringConvertible {
        /// A short, stable word, suitable for a metric label.
        public let description: String

        private init(_ description: String) { self.description = description }

        /// The request cannot be sent as it is: no URL, a bad URL, a body that cannot be read.
        public static let badRequest = Code("bad-request")
        /// The host name could not be resolved.
        public static let resolve = Code("resolve")
        /// No connection could be made.
        public static let connect = Code("connect")
        /// An attempt took too long.
        public static let timeout = Code("timeout")
        /// The call's deadline passed.
        public static let deadlineExceeded = Code("deadline-exceeded")
        /// TLS failed for a reason that may be temporary.
        public static let tls = Code("tls")
        /// The peer's certificate was refused.
        public static let certificate = Code("certificate")
        /// The connection broke. With the progress `notSent`: the peer refused the request without processing it (REFUSED_STREAM
        /// or a GOAWAY that excludes it, RFC 9113 §8.7; H3_REQUEST_REJECTED), which is resent at once.
        public static let connectionLost = Code("connection-lost")
        /// The peer's answer was not HTTP.
        public static let protocolError = Code("protocol-error")
        /// The machine is offline.
        public static let offline = Code("offline")
        /// The server asked for fewer requests, for longer than the call may wait: nothing was sent.
        public static let throttled = Code("throttled")
        /// Most attempts at the origin failed, so nothing is sent there for a while; ``ServiceError/retryAfter`` says how long.
        public static let circuitOpen = Code("circuit-open")
        /// Too many exchanges are in flight, and too many attempts are waiting: nothing was sent.
        public static let tooManyInFlight = Code("too-many-in-flight")
        /// The body exceeds a limit.
        public static let bodyTooLarge = Code("body-too-large")
        /// The redirect chain exceeds its limit.
        public static let tooManyRedirects = Code("too-many-redirects")
        /// The status is not one that the caller accepts.
        public static let unacceptableStatus = Code("unacceptable-status")
        /// The content to send cannot be encoded: nothing was sent.
        public static let encodingFailed = Code("encoding-failed")
        /// The content of the response cannot be decoded.
        public static let decodingFailed = Code("decoding-failed")
        /// The server asks for credentials in a way that this transport does not support.
        public static let authenticationRequired = Code("authentication-required")
        /// The credential is missing or was rejected, and refreshing it failed.
        public static let authorizationFailed = Code("authorization-failed")
        /// This platform or transport cannot do what was asked.
        public static let unsupported = Code("unsupported")
        /// Nothing usable is stored, and loading was forbidden.
        public static let resourceUnavailable = Code("resource-unavailable")
        /// Anything else; see the cause.
        public static let other = Code("other")
    }

    /// The kind of failure.
    public var code: Code
    /// What happened and what to do next, for people; contains no credentials.
    public var message: String
    /// The call that failed: its method and its URL, which prints without credentials. Set by the pipeline or a
    /// typed client, on the error of every call; nil before that.
    public var subject: CallSubject?
    /// The underlying error.
    public var cause: (any Error)?
    /// How far the exchange got; nil if it did not reach a transport.
    public var progress: TransportProgress?
    /// Whether the connection had carried an exchange before.
    public var connectionReused: Bool
    /// The response that the call ended with, if there was one, with its body unread.
    public var response: Response?
    /// Every attempt of the call, in order.
    public var attempts: [AttemptRecord]
    /// How long to wait before calling the server again, counted from the creation of this error: what the server asked for, or
    /// the time until its circuit lets a probe through; nil if neither is known.
    ///
    /// A queue can try again after this time; an earlier try is in vain (RFC 9110 §10.2.3).
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

    /// The call, what happened, what to do, and the cause: "GET https://api.example/items: The server …". Its wording may change; for
    /// decisions and metrics there is ``code``.
    public var description: String {
        text + (cause.map { " (\(ServiceError.text(of: $0)))" } ?? "")
    }

    /// What `dump` shows: the code and the ``description``, which contain no credentials; a cause may.
    public var customMirror: Mirror { Mirror(self, children: ["code": code.description, "text": description]) }

    private var text: String { (subject.map { "\($0): " } ?? "") + message }

    /// The text of a cause; for Foundation's errors, without what they say about the URL, which may contain credentials.
    private static func text(of cause: any Error) -> String {
        guard cause is URLError || type(of: cause) is NSError.Type else { return "\(cause)" }
        let error = cause as NSError
        let words = error.userInfo[NSLocalizedDescriptionKey] as? String
        return "\(error.domain) \(error.code)" + (words.map { ": \($0)" } ?? "")
    }

    /// Like ``description``, without the cause.
    public var errorDescription: String? { text }

    /// The failure as the retry rules see it.
    ///
    /// An error that is not a ``ServiceError`` says nothing about its progress, so it counts as if everything had been sent.
    static func attemptFailure(of error: any Error) -> AttemptFailure {
        guard let error = error as? ServiceError else {
            return AttemptFailure(kind: .other, progress: .bodySent, connectionReused: false)
        }
        // The peer gave the connection up, or this request, and nothing of it was processed.
        let isRefused = error.code == .connectionLost && error.progress == .notSent
        var failure = AttemptFailure(
            kind: isRefused ? .refused : kinds[error.code] ?? .other,
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

extension Error {
    /// The error with the call that it belongs to, if it is a ``ServiceError`` without one.
    package func naming(_ subject: @autoclosure () -> CallSubject) -> any Error {
        guard var error = self as? ServiceError, error.subject == nil else { return self }
        error.subject = subject()
        return error
    }
}

// HoldfastSemantics and HoldfastStorage do not use Foundation, so the text for `localizedDescription` is added here.

extension StoreError: LocalizedError {
    public var errorDescription: String? { message }
}

extension FileSystemError: LocalizedError {
    public var errorDescription: String? {
        "The system refused \(operation) of \(path): \(String(cString: strerror(errno))) (errno \(errno))."
    }
}

extension RetryRulesError: LocalizedError {
    public var errorDescription: String? { description }
}

extension CacheRulesError: LocalizedError {
    public var errorDescription: String? { description }
}

extension TargetURI.Rejection: LocalizedError {
    public var errorDescription: String? { description }
}

extension StructuredFieldError: LocalizedError {
    public var errorDescription: String? { description }
}
