// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation
public import Holdfast

/// What a call of an endpoint failed with, in words for users and for developers.
///
/// Thrown to callers of endpoints. Hooks, retriers, `process` and `mapError` meet the `ServiceError` beneath; ``init(_:operationName:)``
/// makes of it, and of any other error, what the caller would see.
public struct EndpointError: Error, Sendable, CustomStringConvertible {
    /// The kind of failure; new ones may be added.
    public struct Code: Sendable, Hashable, CustomStringConvertible {
        /// A short stable word, fit for a metric label.
        public let description: String

        private init(_ description: String) {
            self.description = description
        }

        /// Not logged in: the credential is missing, or was refused by a 401.
        public static let unauthorized = Code("unauthorized")
        /// Logged in, but not allowed to: 403.
        public static let forbidden = Code("forbidden")
        /// Gone for good: 410.
        public static let gone = Code("gone")
        /// The server is down behind its gateway: 502.
        public static let badGateway = Code("bad-gateway")
        /// Any other status that is no success.
        public static let http = Code("http")
        /// Content was expected and there is none.
        public static let missingData = Code("missing-data")
        /// The content is not what was expected.
        public static let decoding = Code("decoding")
        /// `validate` refused the response.
        public static let validation = Code("validation")
        /// The input cannot be encoded.
        public static let encoding = Code("encoding")
        /// The request cannot be sent as it is declared.
        public static let badRequest = Code("bad-request")
        /// The server cannot be reached, or the connection to it broke.
        public static let network = Code("network")
        /// It took too long.
        public static let timeout = Code("timeout")
        /// The server asked for less, or fails too often, so that nothing was sent for now.
        public static let heldBack = Code("held-back")
        /// The caller's task was cancelled; only where an error had to be made of that.
        public static let cancelled = Code("cancelled")
        /// Anything else; the cause tells.
        public static let other = Code("other")
    }

    /// The kind of failure.
    public var code: Code
    /// What happened and what to do next, in a sentence or two for users; the server's own message where it sent one.
    public var reason: String
    /// What else a developer wants to know; bears no credentials.
    public var details: String?
    /// Whether users can do nothing about it.
    public var isInternal: Bool
    /// The endpoint's ``Endpoint/operationName``.
    public var operationName: String?
    /// What the response's content was decoded to as the service's error response; nil where it was none.
    public var errorResponse: (any AnyErrorResponse)?
    /// The response, content included, if there was one.
    public var response: Response?
    /// Every attempt of the call, in order, where it came to a failure of all.
    public var attempts: [AttemptRecord] = []
    /// How long to leave the server alone, counted from the error's birth; nil where nothing says so.
    public var retryAfter: Duration?
    /// What happened beneath: the `ServiceError`, what `validate` threw, or, with an ``errorResponse``, the ``original``.
    public var cause: (any Error)?

    /// An error of one's own, such as for `validate` to throw.
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

    /// The error of a call whose response says itself what went wrong: its words for users are the server's, the rest is the
    /// original's.
    public static func parsed(_ errorResponse: some AnyErrorResponse, original: EndpointError) -> EndpointError {
        var error = original
        error.errorResponse = errorResponse
        error.reason = errorResponse.message
        error.isInternal = errorResponse.isInternal
        error.cause = original
        return error
    }

    /// The error before the server's own words took the place of ours; nil where they did not.
    public var original: EndpointError? { errorResponse == nil ? nil : cause as? EndpointError }

    /// The error response as the type the service declares.
    public func errorResponse<Parsed: AnyErrorResponse>(as type: Parsed.Type) -> Parsed? {
        errorResponse as? Parsed
    }

    /// The status of the response, if there was one.
    public var status: Int? { response?.status.rawValue }

    /// A heading for an alert, such as "Logging in failed".
    public var title: String { operationName.map { "\($0) failed" } ?? "The request failed" }

    /// A text for an alert: the reason, with a word on what to do where users cannot solve it themselves.
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
