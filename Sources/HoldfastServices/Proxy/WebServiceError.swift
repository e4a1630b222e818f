// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation
public import Holdfast

/// A call that the service refused, or that could not be sent as requested.
public struct WebServiceError: LocalizedError, Sendable, CustomStringConvertible {
    /// The status of the response, outside 200 to 299; 0 if nothing was sent because the path or an argument is invalid.
    public let statusCode: Int
    /// The content of a `text/plain` response that is UTF-8 and not empty, otherwise the name of the status; this is what
    /// `localizedDescription` shows.
    public let errorDescription: String?
    /// The response, content included; nil if nothing was sent. Its `attempts` include the retries.
    public let response: Response?
    /// How long the server asked not to be called, counted from the creation of this error; nil if it did not.
    public let retryAfter: Duration?
    /// What is known about the underlying call, attempts included; nil if nothing was sent, and in errors that you create.
    public let serviceError: ServiceError?

    /// Creates an error, for example for tests.
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

    /// The content of the response; empty if there is none.
    public var content: Data {
        response?.body.bytesInMemory.map { bytes in bytes.withUnsafeBytes { Data($0) } } ?? Data()
    }

    public var description: String {
        (serviceError?.subject.map { "\($0): " } ?? "")
            + "status \(statusCode): \(errorDescription ?? "no description")"
    }
}

extension Response {
    /// The content as UTF-8; nil if it is empty or not UTF-8.
    fileprivate var text: String? {
        guard let bytes = body.bytesInMemory, !bytes.isEmpty else { return nil }
        return bytes.withUnsafeBytes { String(validating: $0, as: UTF8.self) }
    }
}
