// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation

#if canImport(FoundationNetworking)
    private import FoundationNetworking
#endif

extension ServiceError {
    /// The same failure as a `URLError`, for code that catches those.
    ///
    /// If the ``cause`` is a `URLError` that agrees with ``code``, its code is used, and otherwise the one that corresponds to
    /// ``code``. So a lost connection is `.networkConnectionLost` on Linux too, where Foundation has other codes for it. The
    /// underlying error (`NSUnderlyingErrorKey`, `URLError.serviceError`) is this one, and its message is the description. The
    /// failing URL has no user information, query or fragment, which may contain credentials.
    public var urlError: URLError {
        urlErrorOfSameMeaning ?? urlError(ServiceError.nearestCodes[code] ?? .unknown)
    }

    /// Like ``urlError``; nil if URLSession has no code for this failure and the cause has none either.
    package var urlErrorOfSameMeaning: URLError? {
        let original = cause as? URLError
        let codes = ServiceError.equalCodes[code] ?? []
        // If the cause agrees, it is more precise. Foundation on Linux has one code for many failures.
        let agreed = original.flatMap { codes.isEmpty || codes.contains($0.code) ? $0.code : nil }
        return (agreed ?? codes.first).map { urlError($0) }
    }

    private func urlError(_ urlCode: URLError.Code) -> URLError {
        var details = (cause as? URLError)?.userInfo ?? [:]
        details[ServiceError.failingTextKey] = nil
        let failing = (details[NSURLErrorFailingURLErrorKey] as? URL) ?? response?.url
        details[NSURLErrorFailingURLErrorKey] = failing.flatMap { ServiceError.withoutCredentials($0) }
        details[NSUnderlyingErrorKey] = self
        details[NSLocalizedDescriptionKey] = message
        return URLError(urlCode, userInfo: details)
    }

    /// `NSURLErrorFailingURLStringErrorKey`, which Foundation still sets although the constant is deprecated.
    private static let failingTextKey = "NSErrorFailingURLStringKey"

    private static func withoutCredentials(_ url: URL) -> URL? {
        var parts = URLComponents(url: url, resolvingAgainstBaseURL: true)
        parts?.user = nil
        parts?.password = nil
        parts?.query = nil
        parts?.fragment = nil
        return parts?.url
    }

    /// The URLSession codes with the same meaning; the first one is the most general.
    private static let equalCodes: [Code: [URLError.Code]] = [
        .resolve: [.cannotFindHost, .dnsLookupFailed],
        .connect: [.cannotConnectToHost],
        .timeout: [.timedOut],
        .deadlineExceeded: [.timedOut],
        .tls: [.secureConnectionFailed],
        .certificate: [
            .serverCertificateUntrusted, .serverCertificateHasBadDate, .serverCertificateHasUnknownRoot,
            .serverCertificateNotYetValid, .clientCertificateRejected, .clientCertificateRequired,
        ],
        .connectionLost: [.networkConnectionLost],
        .offline: [.notConnectedToInternet, .internationalRoamingOff, .dataNotAllowed, .callIsActive],
        .protocolError: [
            .badServerResponse, .cannotParseResponse, .cannotDecodeRawData, .cannotDecodeContentData, .zeroByteResource,
        ],
        .tooManyRedirects: [.httpTooManyRedirects],
        .authenticationRequired: [.userAuthenticationRequired, .userCancelledAuthentication],
        .resourceUnavailable: [.resourceUnavailable],
        .bodyTooLarge: [.dataLengthExceedsMaximum],
    ]

    /// The nearest codes for failures that URLSession does not have; others are `.unknown`.
    private static let nearestCodes: [Code: URLError.Code] = [
        .badRequest: .badURL,
        .throttled: .resourceUnavailable,
        .circuitOpen: .resourceUnavailable,
        .tooManyInFlight: .resourceUnavailable,
        .unacceptableStatus: .badServerResponse,
        .decodingFailed: .cannotDecodeContentData,
        .authorizationFailed: .userAuthenticationRequired,
        .unsupported: .unsupportedURL,
    ]
}

extension URLError {
    /// The failure of a pipeline's call as a `URLError`; see ``ServiceError/urlError``.
    public init(_ error: ServiceError) { self = error.urlError }

    /// The ``ServiceError`` that this error was made from, with attempts, progress and cause; nil if there is none.
    public var serviceError: ServiceError? {
        userInfo[NSUnderlyingErrorKey] as? ServiceError
    }
}
