// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import Holdfast
internal import HoldfastSemantics

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

extension EndpointError {
    /// The code and text for an error of the pipeline.
    static func words(for error: ServiceError) -> (code: Code, reason: String, isInternal: Bool) {
        if error.code == .unacceptableStatus, let status = error.response?.status.rawValue { return words(for: status) }
        if error.cause is MissingData { return (.missingData, "The server's response is empty.", true) }
        if let words = table[error.code] { return words }
        return (.other, "An unexpected error occurred.", true)
    }

    private static func words(for status: Int) -> (code: Code, reason: String, isInternal: Bool) {
        switch status {
        case 401: (.unauthorized, "You are not logged in, or your session has expired. Log in and try again.", false)
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

    private static let offline = "There is no network connection. Connect and try again."
    private static let unknownHost = "The server could not be found. Check the network connection and try again."
    private static let unreachable = "The server cannot be reached. Check the network connection and try again."
    private static let broken = "The connection was lost. Try again."
    private static let insecure =
        "A secure connection to the server could not be made. Check the network, and the date and time of this device."
    private static let untrusted = "The server's identity could not be verified, so nothing was sent to it."
    private static let tooLong = "The server took too long to respond. Try again later."

    private static let table: [ServiceError.Code: (code: Code, reason: String, isInternal: Bool)] = [
        .offline: (.network, offline, false),
        .resolve: (.network, unknownHost, false),
        .connect: (.network, unreachable, false),
        .connectionLost: (.network, broken, false),
        .tls: (.network, insecure, false),
        .certificate: (.network, untrusted, false),
        .protocolError: (.network, "The server's response is not valid HTTP.", true),
        .tooManyRedirects: (.network, "The server redirected too many times.", true),
        .timeout: (.timeout, tooLong, false),
        .deadlineExceeded: (.timeout, tooLong, false),
        .throttled: (.heldBack, "The server asked for fewer requests. Try again later.", false),
        .circuitOpen: (.heldBack, "The server is failing at the moment. Try again later.", false),
        .tooManyInFlight: (.heldBack, "Too many requests at once. Try again in a moment.", false),
        .authorizationFailed: (
            .unauthorized, "You are not logged in, or your session has expired. Log in and try again.", false
        ),
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
    static func words(for code: URLError.Code) -> (code: Code, reason: String) {
        switch code {
        case .notConnectedToInternet, .dataNotAllowed, .internationalRoamingOff: (.network, offline)
        case .cannotFindHost, .dnsLookupFailed: (.network, unknownHost)
        case .cannotConnectToHost: (.network, unreachable)
        case .networkConnectionLost: (.network, broken)
        case .secureConnectionFailed: (.network, insecure)
        case .serverCertificateUntrusted, .serverCertificateHasBadDate, .serverCertificateHasUnknownRoot,
            .serverCertificateNotYetValid:
            (.network, untrusted)
        case .timedOut: (.timeout, tooLong)
        case .userAuthenticationRequired:
            (.unauthorized, "You are not logged in, or your session has expired. Log in and try again.")
        case .cancelled: (.cancelled, "The call was cancelled.")
        case .badURL, .unsupportedURL: (.badRequest, "The request is invalid.")
        default: (.other, "An unexpected error occurred.")
        }
    }
}
