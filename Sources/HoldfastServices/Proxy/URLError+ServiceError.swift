// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation
public import Holdfast

extension URLError {
    /// What is known of a call that failed, where a ``WebServiceProxy`` threw this error: attempts, progress, the cause.
    public var serviceError: ServiceError? {
        userInfo[NSUnderlyingErrorKey] as? ServiceError
    }
}

extension ServiceError {
    /// The same failure in the words of URLSession, with this error underneath; nil where it has none.
    var urlError: URLError? {
        let original = cause as? URLError
        let codes = ServiceError.urlErrorCodes[code] ?? []
        // The cause is more exact where it agrees. Foundation on Linux has one code for many failures.
        let agreed = original.flatMap { codes.isEmpty || codes.contains($0.code) ? $0.code : nil }
        guard let urlCode = agreed ?? codes.first else { return nil }
        var details = original?.userInfo ?? [:]
        details[NSUnderlyingErrorKey] = self
        details[NSLocalizedDescriptionKey] = message
        return URLError(urlCode, userInfo: details)
    }

    /// The codes of URLSession that mean the same; the first one is the most general.
    private static let urlErrorCodes: [Code: [URLError.Code]] = [
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
}
