// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation
public import Holdfast

/// A call that the service refused, or that could not be sent as it was asked for.
public struct WebServiceError: LocalizedError, Sendable, CustomStringConvertible {
    /// The status of the response, outside 200 to 299; 0 where nothing was sent because the path or an argument cannot be.
    public let statusCode: Int
    /// The content of a response of type `text/plain` that is UTF-8 and not empty, else the status in words; what
    /// `localizedDescription` shows.
    public let errorDescription: String?
    /// The response, content included; nil where nothing was sent. Its `attempts` tell of retries.
    public let response: Response?
    /// How long the server asked to be left alone, counted from the error's birth; nil where it did not.
    public let retryAfter: Duration?
    /// What is known of the call beneath, attempts included; nil where nothing was sent, and in an error of one's own.
    public let serviceError: ServiceError?

    /// An error of one's own, as for tests.
    public init(
        statusCode: Int,
        errorDescription: String?,
        response: Response? = nil,
        retryAfter: Duration? = nil
    ) {
        self.statusCode = statusCode
        self.errorDescription = errorDescription
        self.response = response
        self.retryAfter = retryAfter
        serviceError = nil
    }

    /// The error of a response that was not accepted.
    init(_ response: Response, because error: ServiceError) {
        let text = response.proxyContentType == "text/plain" ? response.text : nil
        statusCode = response.status.rawValue
        errorDescription = text ?? response.status.reasonPhrase
        self.response = response
        retryAfter = error.retryAfter
        serviceError = error
    }

    /// The error of a call that is not sent.
    init(refusing reason: String) {
        self.init(statusCode: 0, errorDescription: reason)
    }

    /// The content of the response; empty where there is none.
    public var content: Data {
        response?.body.bytesInMemory.map { bytes in bytes.withUnsafeBytes { Data($0) } } ?? Data()
    }

    public var description: String {
        (serviceError?.subject.map { "\($0): " } ?? "")
            + "status \(statusCode): \(errorDescription ?? "no description")"
    }
}

extension Response {
    /// The content as UTF-8; nil where it is empty or something else.
    fileprivate var text: String? {
        guard let bytes = body.bytesInMemory, !bytes.isEmpty else { return nil }
        return bytes.withUnsafeBytes { String(validating: $0, as: UTF8.self) }
    }
}
