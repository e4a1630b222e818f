// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import HoldfastSemantics

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// What URLSession's errors mean: the one table from its codes, and on Linux from libcurl's messages, to ``ServiceError``.
enum TransferFailure {
    /// The ``ServiceError`` for `error`, with the progress of the exchange.
    ///
    /// Progress is `notSent` only if the code proves it and no content was seen to leave: libcurl may have lost an earlier
    /// connection before the one that it could not make. Otherwise, it is what was observed, or more if more is possible.
    ///
    /// - Parameter hasSentContent: whether some of the content was sent.
    static func serviceError(
        for error: any Error,
        url: URL?,
        progress: TransportProgress,
        connectionReused: Bool,
        hasSentContent: Bool = false
    ) -> ServiceError {
        let meaning = meaning(of: error as? URLError, scheme: url?.scheme?.lowercased(), progress)
        let provesNothingSent = meaning.proof == .notSent && !hasSentContent && progress < .headReceived
        return meaning.error(
            cause: error,
            progress: provesNothingSent ? .notSent : progress,
            connectionReused: connectionReused
        )
    }

    /// The end of a body that exceeds the limit for unread bytes.
    static func bodyTooLarge(_ limit: Int, progress: TransportProgress) -> ServiceError {
        ServiceError(
            .bodyTooLarge,
            "More than \(limit) bytes of the response are waiting to be read, and URLSession cannot slow a server down; raise "
                + "`URLSessionTransport.Limits.bodyOnDisk`, read faster, or use the AsyncHTTPClient transport.",
            progress: progress
        )
    }

    /// The end of a body that could not be written to, or read from, its spill file.
    static func spillFailed(_ cause: any Error, progress: TransportProgress) -> ServiceError {
        ServiceError(
            .other,
            "The response body did not fit into memory, and its temporary file failed; check the free space and permissions of the "
                + "temporary directory.",
            cause: cause,
            progress: progress
        )
    }

    /// The end of an exchange whose body file changed.
    static func changedFile(_ cause: any Error, progress: TransportProgress) -> ServiceError {
        ServiceError(
            .badRequest,
            "The file with the request body changed, or could not be read, while it was being sent, so the exchange was aborted; "
                + "do not change the file until the call has ended.",
            cause: cause,
            progress: progress
        )
    }

    private static func meaning(
        of urlError: URLError?,
        scheme: String?,
        _ progress: TransportProgress
    ) -> FailureMeaning {
        guard let urlError else {
            return FailureMeaning(
                code: .other,
                message: "The transfer failed for a reason outside URLSession; see the cause."
            )
        }
        let hasHead = progress >= .headReceived
        switch urlError.code {
        case .badServerResponse where !hasHead:
            // Foundation on Linux uses it if the connection ended before the first byte of a response.
            return .connectionLost
        case .unsupportedURL where scheme == "http" || scheme == "https":
            // On Linux, also the code for a response without a status line.
            return notHTTP
        case .unknown:
            return meaning(ofMessage: urlError.localizedDescription, hasHead, isTLS: scheme == "https")
        default:
            return meanings[urlError.code]
                ?? FailureMeaning(
                    code: .other,
                    message: "URLSession failed with code \(urlError.code.rawValue); see the cause."
                )
        }
    }

    /// Foundation on Linux has one code, -1, for all errors of libcurl that it does not know; only the text distinguishes them.
    private static func meaning(ofMessage text: String, _ hasHead: Bool, isTLS: Bool) -> FailureMeaning {
        // A broken exchange has its own code; with this one, the handshake failed.
        if text.hasPrefix("Recv failure") { return isTLS && !hasHead ? tls : .connectionLost }
        for (start, meaning) in curlMessages where text.hasPrefix(start) { return meaning }
        return hasHead
            ? notHTTP : FailureMeaning(code: .other, message: "URLSession failed for an unknown reason; see the cause.")
    }

    private static let notHTTP = FailureMeaning(
        code: .protocolError,
        message: "The server's response is not valid HTTP. Check that the URL leads to an HTTP server."
    )
    /// Proves nothing here: URLSession has no other code for failures on an open connection.
    private static let tls = FailureMeaning(code: .tls, message: FailureMeaning.handshake.message)
    private static let certificate = FailureMeaning(
        code: .certificate,
        message: "The server's certificate is not trusted. Renew it, or trust its issuer on this machine.",
        proof: .notSent
    )
    private static let clientCertificate = FailureMeaning(
        code: .certificate,
        message: "The server rejected the client's certificate, or requires one. Provide one in the session's delegate."
    )
    private static let connect = FailureMeaning(
        code: .connect,
        message: "The connection was refused. Check the host and the port, and that the server is running.",
        proof: .notSent
    )
    private static let offline = FailureMeaning(
        code: .offline,
        message: "The machine is offline. Try again when it has a network connection.",
        proof: .notSent
    )
    /// The file with the request body cannot be read.
    static let unreadableBody = FailureMeaning(
        code: .badRequest,
        message: "The file with the request body could not be read. Check its path and permissions.",
        proof: .notSent
    )
    /// Content would not be sent.
    static let noContent = FailureMeaning(
        code: .unsupported,
        message:
            "URLSession cannot send content with this method. Use another method, or the AsyncHTTPClient transport.",
        proof: .notSent
    )
    private static let authentication = FailureMeaning(
        code: .authenticationRequired,
        message: "The server requires credentials. Set the Authorization field before sending."
    )

    private static let meanings: [URLError.Code: FailureMeaning] = [
        .cannotFindHost: .resolve, .dnsLookupFailed: .resolve,
        .cannotConnectToHost: connect,
        .timedOut: FailureMeaning(
            code: .timeout,
            message: "The server sent nothing for too long. Allow more time, or find out why the server is slow."
        ),
        .networkConnectionLost: .connectionLost,
        .notConnectedToInternet: offline, .internationalRoamingOff: offline, .dataNotAllowed: offline,
        .callIsActive: offline,
        .secureConnectionFailed: tls,
        .serverCertificateHasBadDate: certificate, .serverCertificateUntrusted: certificate,
        .serverCertificateHasUnknownRoot: certificate, .serverCertificateNotYetValid: certificate,
        .clientCertificateRejected: clientCertificate, .clientCertificateRequired: clientCertificate,
        .badURL: FailureMeaning(code: .badRequest, message: "The URL is invalid. Check its spelling.", proof: .notSent),
        .unsupportedURL: FailureMeaning(
            code: .badRequest,
            message: "The URL's scheme is not supported. Use http or https.",
            proof: .notSent
        ),
        .fileDoesNotExist: unreadableBody, .noPermissionsToReadFile: unreadableBody, .fileIsDirectory: unreadableBody,
        .dataLengthExceedsMaximum: noContent,
        .badServerResponse: notHTTP, .cannotParseResponse: notHTTP, .cannotDecodeRawData: notHTTP,
        .cannotDecodeContentData: notHTTP, .zeroByteResource: notHTTP,
        .httpTooManyRedirects: FailureMeaning(
            code: .tooManyRedirects,
            message: "The server redirected too many times; its redirects probably form a loop."
        ),
        .userAuthenticationRequired: authentication, .userCancelledAuthentication: authentication,
        .cancelled: FailureMeaning(
            code: .other,
            message:
                "The session ended this transfer, but its task was not cancelled; do not invalidate a session in use."
        ),
    ]

    private static let curlMessages: [(String, FailureMeaning)] = [
        ("transfer closed", .connectionLost),
        ("Send failure", .connectionLost),
        // A connection that was reset while it was made, which Foundation does not count as refused.
        ("Failed to connect to", connect),
        ("Couldn't connect to server", connect),
        ("SSL certificate problem", certificate),
        ("SSL: no alternative certificate", certificate),
        ("SSL", tls),
        ("OpenSSL", tls),
        ("Invalid Content-Length", notHTTP),
        (
            "Unrecognized content encoding",
            FailureMeaning(
                code: .unsupported,
                message: "The response has a content coding that URLSession cannot decode on this platform; ask for "
                    + "another with Accept-Encoding, or use the AsyncHTTPClient transport."
            )
        ),
    ]
}

/// How long a URLSession waits while nothing happens, and which setting says so.
struct IdleLimit: Sendable {
    let duration: Duration
    /// The setting, as it is written in code.
    let setting: String

    /// The text of an exchange in which nothing happened for that long.
    var message: String {
        "The server sent nothing for \(duration) (`\(setting)`). Allow more time, or find out why the server is slow."
    }
}
