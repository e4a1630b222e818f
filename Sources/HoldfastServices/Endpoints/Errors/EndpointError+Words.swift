// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import Holdfast
internal import HoldfastSemantics

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

extension EndpointError {
    /// The words for an error of the pipeline.
    static func words(for error: ServiceError) -> (code: Code, reason: String, isInternal: Bool) {
        if error.code == .unacceptableStatus, let status = error.response?.status.rawValue { return words(for: status) }
        if error.cause is MissingData { return (.missingData, "The server's answer is empty.", true) }
        if let words = table[error.code] { return words }
        return (.other, "It failed for an unexpected reason.", true)
    }

    private static func words(for status: Int) -> (code: Code, reason: String, isInternal: Bool) {
        switch status {
        case 401: (.unauthorized, "You are not logged in, or no longer: log in and try again.", false)
        case 403: (.forbidden, "You are not allowed to do this.", false)
        case 404: (.http, "It was not found (status 404).", true)
        case 410: (.gone, "This is gone for good. If it used to work, update to the newest version.", false)
        case 429: (.http, "There were too many requests (status 429): wait a while and try again.", false)
        case 502: (.badGateway, "The server is out of order at the moment: try again later.", false)
        case 503: (.http, "The server is busy or in maintenance (status 503): try again later.", false)
        case 500...: (.http, "The server failed (status \(status)): try again later.", true)
        default: (.http, "The server refused the request (status \(status)).", true)
        }
    }

    private static let offline = "There is no network connection: connect and try again."
    private static let unknownHost = "The server was not found: check the network connection and try again."
    private static let unreachable = "The server cannot be reached: check the network connection and try again."
    private static let broken = "The connection broke before all had come: try again."
    private static let insecure = "No secure connection to the server could be made: check the network and the clock."
    private static let untrusted = "The server could not prove who it is, so nothing was sent to it."
    private static let tooLong = "The server took too long to answer: try again later."

    private static let table: [ServiceError.Code: (code: Code, reason: String, isInternal: Bool)] = [
        .offline: (.network, offline, false),
        .resolve: (.network, unknownHost, false),
        .connect: (.network, unreachable, false),
        .connectionLost: (.network, broken, false),
        .tls: (.network, insecure, false),
        .certificate: (.network, untrusted, false),
        .protocolError: (.network, "The server's answer is no HTTP.", true),
        .tooManyRedirects: (.network, "The server sends the request round in circles.", true),
        .timeout: (.timeout, tooLong, false),
        .deadlineExceeded: (.timeout, tooLong, false),
        .throttled: (.heldBack, "The server asked for a pause: try again later.", false),
        .circuitOpen: (.heldBack, "The server fails too often at the moment: try again later.", false),
        .tooManyInFlight: (.heldBack, "Too much is being asked at once: try again in a moment.", false),
        .authorizationFailed: (.unauthorized, "You are not logged in, or no longer: log in and try again.", false),
        .authenticationRequired: (
            .unauthorized, "The server or a proxy asks for a login that cannot be given here.", false
        ),
        .encodingFailed: (.encoding, "What was to be sent cannot be written.", true),
        .decodingFailed: (.decoding, "The server's answer cannot be read.", true),
        .badRequest: (.badRequest, "The request cannot be sent as it is.", true),
        .unsupported: (.badRequest, "This system cannot do what was asked.", true),
        .bodyTooLarge: (.other, "There is more content than may be taken.", true),
        .resourceUnavailable: (.network, "It is not available without a network connection.", false),
    ]

    /// The words for an error of the platform's URL loading, where a transport or hook let it through.
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
        case .userAuthenticationRequired: (.unauthorized, "You are not logged in, or no longer: log in and try again.")
        case .cancelled: (.cancelled, "The call was cancelled.")
        case .badURL, .unsupportedURL: (.badRequest, "The request cannot be sent as it is.")
        default: (.other, "It failed for an unexpected reason.")
        }
    }
}
