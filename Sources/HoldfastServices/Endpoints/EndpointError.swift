// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation
public import Holdfast

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// The failure of an endpoint's call, with text for users and for developers.
///
/// Callers of endpoints get this error. Hooks, retriers, `process` and `mapError` get the underlying `ServiceError`;
/// ``init(_:operationName:)`` converts it, or any other error, to what the caller would see.
public struct EndpointError: Error, Sendable, CustomStringConvertible {
    /// The kind of failure; new ones may be added.
    public struct Code: Sendable, Hashable, CustomStringConvertible {
        /// A short stable word, usable as a metric label.
        public let description: String

        private init(_ description: String) { self.description = description }

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

    public var description: String { "\(title): \(code): \(reason)" + (details.map { " (\($0))" } ?? "") }
}

extension EndpointError: LocalizedError {
    public var errorDescription: String? { alertMessage }
    public var failureReason: String? { reason }
}

extension EndpointError {
    /// The error that a caller of an endpoint sees for `error`.
    ///
    /// - Parameters:
    ///   - error: a `ServiceError`, an ``EndpointError``, which stays as it is, or any other error.
    ///   - operationName: what the call does; used if the error does not say it.
    public init(_ error: any Error, operationName: String? = nil) {
        switch error {
        case let error as EndpointError: self = error
        case let error as ServiceError: self = EndpointError(error)
        case let error as URLError: self = EndpointError(error)
        case _ where error.isCancellation:
            self.init("The call was cancelled.", code: .cancelled, cause: error)
        default:
            self.init(
                "An unexpected error occurred.",
                code: .other,
                details: "\(error)",
                isInternal: true,
                cause: error
            )
        }
        if self.operationName == nil { self.operationName = operationName }
    }

    private init(_ error: ServiceError) {
        if var carried = error.cause as? EndpointError {
            carried.adopt(error)
            self = carried
            return
        }
        if let refused = error.cause as? RefusedByValidation {
            self.init(refused)
            adopt(error)
            return
        }
        let (code, reason, isInternal) = EndpointError.words(for: error)
        self.init(reason, code: code, details: error.description, isInternal: isInternal, cause: error)
        adopt(error)
    }

    /// Copies what the underlying error knows about the exchange.
    private mutating func adopt(_ error: ServiceError) {
        if response == nil { response = error.response }
        retryAfter = error.retryAfter
        attempts = error.attempts.isEmpty ? error.response?.attempts ?? [] : error.attempts
    }

    private init(_ refused: RefusedByValidation) {
        if let own = refused.error as? EndpointError {
            self = own
        } else {
            let reason = (refused.error as? any LocalizedError)?.errorDescription
            self.init(
                reason ?? "The server reported a failure.",
                details: "\(refused.error)",
                isInternal: reason == nil,
                cause: refused.error
            )
        }
    }

    private init(_ error: URLError) {
        let (code, reason) = EndpointError.words(for: error.code)
        self.init(
            reason,
            code: code,
            details: "URLError \(error.code.rawValue)",
            isInternal: code == .other,
            cause: error
        )
    }

    /// The error as it goes through the pipeline: a ``ServiceError`` that retriers and hooks understand, with this error as its
    /// cause.
    func carried(by error: any Error) -> ServiceError {
        var carrier =
            error as? ServiceError
            ?? ServiceError(.other, "The response was rejected; see the cause.", progress: .headReceived)
        carrier.cause = self
        if carrier.response == nil { carrier.response = response }
        return carrier
    }
}

extension EndpointError {
    /// The code and text for an error of the pipeline.
    private static func words(for error: ServiceError) -> (code: Code, reason: String, isInternal: Bool) {
        if error.code == .unacceptableStatus, let status = error.response?.status.rawValue { return words(for: status) }
        if error.cause is MissingData { return (.missingData, "The server's response is empty.", true) }
        if let words = table[error.code] { return words }
        return (.other, "An unexpected error occurred.", true)
    }

    private static func words(for status: Int) -> (code: Code, reason: String, isInternal: Bool) {
        switch status {
        case 401: (.unauthorized, notLoggedIn, false)
        case 403: (.forbidden, "You are not allowed to do this.", false)
        case 404: (.http, "Not found (status 404).", true)
        case 410: (.gone, "This is no longer available. If it used to work, update to the newest version.", false)
        case 429: (.http, "Too many requests (status 429). Wait a while and try again.", false)
        case 502: (.badGateway, "The server is not available at the moment. Try again later.", false)
        case 503: (.http, "The server is busy or under maintenance (status 503). Try again later.", false)
        case 500...: (.http, "The server failed (status \(status)). Try again later.", true)
        default: (.http, "The server rejected the request (status \(status)).", true)
        }
    }

    private static let notLoggedIn = "You are not logged in, or your session has expired. Log in and try again."
    private static let tooLong = "The server took too long to respond. Try again later."

    private static let table: [ServiceError.Code: (code: Code, reason: String, isInternal: Bool)] = [
        .offline: (.network, "There is no network connection. Connect and try again.", false),
        .resolve: (.network, "The server could not be found. Check the network connection and try again.", false),
        .connect: (.network, "The server cannot be reached. Check the network connection and try again.", false),
        .connectionLost: (.network, "The connection was lost. Try again.", false),
        .tls: (
            .network,
            "A secure connection to the server could not be made. Check the network, and the date and time of this device.",
            false
        ),
        .certificate: (
            .network, "The server's identity could not be verified, so nothing was sent to it.", false
        ),
        .protocolError: (.network, "The server's response is not valid HTTP.", true),
        .tooManyRedirects: (.network, "The server redirected too many times.", true),
        .timeout: (.timeout, tooLong, false),
        .deadlineExceeded: (.timeout, tooLong, false),
        .throttled: (.heldBack, "The server asked for fewer requests. Try again later.", false),
        .circuitOpen: (.heldBack, "The server is failing at the moment. Try again later.", false),
        .tooManyInFlight: (.heldBack, "Too many requests at once. Try again in a moment.", false),
        .authorizationFailed: (.unauthorized, notLoggedIn, false),
        .authenticationRequired: (
            .unauthorized, "The server or a proxy requires a login that is not available here.", false
        ),
        .encodingFailed: (.encoding, "The data to send could not be encoded.", true),
        .decodingFailed: (.decoding, "The server's response could not be read.", true),
        .badRequest: (.badRequest, "The request is invalid.", true),
        .unsupported: (.badRequest, "This is not supported on this system.", true),
        .bodyTooLarge: (.other, "The response is too large.", true),
        .resourceUnavailable: (.network, "This is not available without a network connection.", false),
    ]

    /// The code and text for an error of the platform's URL loading, if a transport or hook did not convert it.
    private static func words(for code: URLError.Code) -> (code: Code, reason: String) {
        if code == .cancelled { return (.cancelled, "The call was cancelled.") }
        guard let words = meanings[code].flatMap({ table[$0] }) else {
            return (.other, "An unexpected error occurred.")
        }
        return (words.code, words.reason)
    }

    private static let meanings: [URLError.Code: ServiceError.Code] = [
        .notConnectedToInternet: .offline, .dataNotAllowed: .offline, .internationalRoamingOff: .offline,
        .cannotFindHost: .resolve, .dnsLookupFailed: .resolve, .cannotConnectToHost: .connect,
        .networkConnectionLost: .connectionLost, .secureConnectionFailed: .tls,
        .serverCertificateUntrusted: .certificate, .serverCertificateHasBadDate: .certificate,
        .serverCertificateHasUnknownRoot: .certificate, .serverCertificateNotYetValid: .certificate,
        .timedOut: .timeout, .userAuthenticationRequired: .authorizationFailed,
        .badURL: .badRequest, .unsupportedURL: .badRequest,
    ]
}
