// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation
public import Holdfast

/// The failure of an endpoint's call, with text for users and for developers.
///
/// Callers of endpoints get this error. Hooks, retriers, `process` and `mapError` get the underlying `ServiceError`;
/// ``init(_:operationName:)`` converts it, or any other error, to what the caller would see.
public struct EndpointError: Error, Sendable, CustomStringConvertible {
    /// The kind of failure; new ones may be added.
    public struct Code: Sendable, Hashable, CustomStringConvertible {
        /// A short stable word, usable as a metric label.
        public let description: String

        private init(_ description: String) {
            self.description = description
        }

        /// Not logged in: the credential is missing, or a 401 rejected it.
        public static let unauthorized = Code("unauthorized")
        /// Logged in, but not allowed: 403.
        public static let forbidden = Code("forbidden")
        /// Permanently gone: 410.
        public static let gone = Code("gone")
        /// The server behind a gateway is down: 502.
        public static let badGateway = Code("bad-gateway")
        /// Any other status that is not a success.
        public static let http = Code("http")
        /// The response has no content, although content was expected.
        public static let missingData = Code("missing-data")
        /// The content is not what was expected.
        public static let decoding = Code("decoding")
        /// `validate` refused the response.
        public static let validation = Code("validation")
        /// The input cannot be encoded.
        public static let encoding = Code("encoding")
        /// The request cannot be sent as declared.
        public static let badRequest = Code("bad-request")
        /// The server cannot be reached, or the connection to it broke.
        public static let network = Code("network")
        /// The call took too long.
        public static let timeout = Code("timeout")
        /// The server asked for fewer requests, or fails too often, so nothing was sent for now.
        public static let heldBack = Code("held-back")
        /// The caller's task was cancelled; only used if this has to be reported as an error.
        public static let cancelled = Code("cancelled")
        /// Anything else; see the cause.
        public static let other = Code("other")
    }

    /// The kind of failure.
    public var code: Code
    /// What happened and what to do next, in a sentence or two for users; the server's own message if it sent one.
    public var reason: String
    /// More for developers; contains no credentials.
    public var details: String?
    /// Whether users can do nothing about it.
    public var isInternal: Bool
    /// The endpoint's ``Endpoint/operationName``.
    public var operationName: String?
    /// The service's error response that the content was decoded to; nil if there was none.
    public var errorResponse: (any AnyErrorResponse)?
    /// The response, content included, if there was one.
    public var response: Response?
    /// Every attempt of the call, in order, if all of them failed.
    public var attempts: [AttemptRecord] = []
    /// How long not to call the server, counted from the creation of this error; nil if unknown.
    public var retryAfter: Duration?
    /// The underlying error: the `ServiceError`, what `validate` threw, or, with an ``errorResponse``, the ``original``.
    public var cause: (any Error)?

    /// Creates an error, for example for `validate` to throw.
    public init(
        _ reason: String,
        code: Code = .validation,
        details: String? = nil,
        isInternal: Bool = false,
        cause: (any Error)? = nil
    ) {
        self.code = code
        self.reason = reason
        self.details = details
        self.isInternal = isInternal
        self.cause = cause
    }

    /// The error of a call whose response says what went wrong: its text for users is the server's, the rest is the original's.
    public static func parsed(_ errorResponse: some AnyErrorResponse, original: EndpointError) -> EndpointError {
        var error = original
        error.errorResponse = errorResponse
        error.reason = errorResponse.message
        error.isInternal = errorResponse.isInternal
        error.cause = original
        return error
    }

    /// The error with our text, before the server's replaced it; nil if it did not.
    public var original: EndpointError? { errorResponse == nil ? nil : cause as? EndpointError }

    /// The error response as the type that the service declares.
    public func errorResponse<Parsed: AnyErrorResponse>(as type: Parsed.Type) -> Parsed? {
        errorResponse as? Parsed
    }

    /// The status of the response, if there was one.
    public var status: Int? { response?.status.rawValue }

    /// A heading for an alert, such as "Logging in failed".
    public var title: String { operationName.map { "\($0) failed" } ?? "The request failed" }

    /// A text for an alert: the reason, with advice if users cannot solve it themselves.
    public var alertMessage: String {
        isInternal
            ? "An unexpected error occurred. Please try again later; if it keeps happening, report this: \(reason)"
            : reason
    }

    public var description: String {
        "\(title): \(code): \(reason)" + (details.map { " (\($0))" } ?? "")
    }
}

extension EndpointError: LocalizedError {
    public var errorDescription: String? { alertMessage }
    public var failureReason: String? { reason }
}
