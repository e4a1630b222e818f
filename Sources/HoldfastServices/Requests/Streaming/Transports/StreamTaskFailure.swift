// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import Holdfast
internal import HoldfastSemantics

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// What the errors of WebSocket tasks mean.
enum StreamTaskFailure {
    /// The error of a stream that did not open.
    static func whileOpening(_ error: any Error, task: URLSessionWebSocketTask) -> any Error {
        if error is CancellationError { return error }
        if let response = task.response as? HTTPURLResponse, response.statusCode != 101 {
            var fields: [String: String] = [:]
            for (name, value) in response.allHeaderFields { fields["\(name)"] = "\(value)" }
            return ServiceError(
                .unacceptableStatus,
                "The server answered with status \(response.statusCode) in place of opening a stream (101); check the request's "
                    + "URL, and its credential.",
                cause: error,
                progress: .headReceived,
                response: Response(
                    status: StatusCode(rawValue: response.statusCode),
                    fields: HeaderFields(fields),
                    url: response.url
                )
            )
        }
        return serviceError(for: error)
    }

    /// The error of a stream that was open.
    static func whileOpen(_ error: any Error, task: URLSessionWebSocketTask) -> any Error {
        if task.closeCode != .invalid {
            let reason = task.closeReason.map { String(decoding: $0, as: UTF8.self) }
            return StreamClosedError(
                StreamCloseCode(rawValue: UInt16(clamping: task.closeCode.rawValue)),
                reason: reason?.isEmpty == true ? nil : reason
            )
        }
        let error = error as NSError
        if error.domain == NSPOSIXErrorDomain, error.code == Int(EMSGSIZE) {
            return ServiceError(
                .bodyTooLarge,
                "A message exceeds the limit; raise `StreamLimits.messageSize`.",
                cause: error
            )
        }
        return serviceError(for: error)
    }

    /// The error for one of URLSession's, by its code.
    static func serviceError(for error: any Error) -> any Error {
        guard let urlError = error as? URLError else {
            return (error as? StreamClosedError)
                ?? ServiceError(.connectionLost, "The stream broke; schedule the request again.", cause: error)
                as any Error
        }
        switch urlError.code {
        case .unsupportedURL:
            return ServiceError(
                .unsupported,
                "URLSession cannot open WebSockets here: FoundationNetworking was built without them. Give the service a "
                    + "`streamTransport` over another WebSocket library.",
                cause: error,
                progress: .notSent
            )
        case .cannotFindHost, .dnsLookupFailed:
            return ServiceError(.resolve, "The stream's host could not be resolved; check its name.", cause: error)
        case .cannotConnectToHost:
            return ServiceError(
                .connect,
                "The connection was refused. Check the host and the port, and that the server is running.",
                cause: error
            )
        case .timedOut:
            return ServiceError(.timeout, "The server was silent for too long; open the stream again.", cause: error)
        case .notConnectedToInternet:
            return ServiceError(.offline, "The machine has no network connection; try when it has.", cause: error)
        case .secureConnectionFailed:
            return ServiceError(.tls, "No TLS connection could be made; check that the port speaks TLS.", cause: error)
        case .serverCertificateUntrusted, .serverCertificateHasBadDate, .serverCertificateHasUnknownRoot,
            .serverCertificateNotYetValid:
            return ServiceError(.certificate, "The server's certificate was refused; renew or trust it.", cause: error)
        case .badServerResponse:
            return ServiceError(
                .protocolError,
                "The server does not open a stream there; check that the URL names a WebSocket.",
                cause: error
            )
        default:
            return ServiceError(.connectionLost, "The stream broke; schedule the request again.", cause: error)
        }
    }
}
