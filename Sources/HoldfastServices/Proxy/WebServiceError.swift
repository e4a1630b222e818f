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
    /// The call that was not sent, without a path or arguments that are invalid.
    var call: CallSubject?

    /// Creates an error, for example for tests.
    public init(statusCode: Int, errorDescription: String?, response: Response? = nil, retryAfter: Duration? = nil) {
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
    init(refusing reason: String) { self.init(statusCode: 0, errorDescription: reason) }

    /// The content of the response; empty if there is none.
    public var content: Data { response?.body.bytesInMemory?.data ?? Data() }

    public var description: String {
        ((serviceError?.subject ?? call).map { "\($0): " } ?? "")
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

extension DecodingError {
    /// What is known about the call whose content could not be decoded, response included; nil if the error is not from a call.
    ///
    /// A ``WebServiceProxy`` throws such errors.
    public var serviceError: ServiceError? { context?.underlyingError as? ServiceError }

    /// The same error, with its call: the method and URL, the status, and how the content begins.
    ///
    /// URL and content are shown only as far as they are safe to log.
    func naming(_ method: HttpMethod, response: Response, content: Data, type: Any.Type) -> DecodingError {
        guard let context else { return self }
        let url = response.url.map { " \(RedactedURL($0))" } ?? ""
        let described = Context(
            codingPath: context.codingPath,
            debugDescription: "\(context.debugDescription) This is the response to \(method.rawValue)\(url), status "
                + "\(response.status.rawValue), whose content \(Redactor.beginning(of: content)).",
            underlyingError: ServiceError.decodingFailed(as: type, cause: self, response)
        )
        return switch self {
        case .typeMismatch(let type, _): .typeMismatch(type, described)
        case .valueNotFound(let type, _): .valueNotFound(type, described)
        case .keyNotFound(let key, _): .keyNotFound(key, described)
        case .dataCorrupted: .dataCorrupted(described)
        @unknown default: self
        }
    }

    private var context: Context? {
        switch self {
        case .typeMismatch(_, let context), .valueNotFound(_, let context), .keyNotFound(_, let context),
            .dataCorrupted(let context):
            context
        @unknown default: nil
        }
    }
}

extension Redactor {
    /// The most characters of content that an error shows, and the most bytes that are searched for them.
    private static let shown = (characters: 200, bytes: 64 << 10)

    /// How content begins, in words that follow "content", without possible secrets.
    static func beginning(of content: Data) -> String {
        guard !content.isEmpty else { return "is empty" }
        guard content.count <= shown.bytes else { return "has \(content.count) bytes, which are not shown" }
        guard let text = String(validating: content, as: UTF8.self) else {
            return "has \(content.count) bytes, which are not text"
        }
        var redactor = Redactor(Redaction())
        let isJSON = text.first { !$0.isWhitespace }.map { $0 == "{" || $0 == "[" || $0 == "\"" } ?? false
        let safe = isJSON ? redactor.json(content) ?? redactor.beforeSecret(in: text) : redactor.text(text)
        guard redactor.secrets.count <= Redactor.mostSecrets else {
            return "has \(content.count) bytes, and too many secrets to be shown"
        }
        let line = redactor.finished([safe])[0]
        return line.count <= shown.characters
            ? "is \(line)" : "begins \(line.prefix(shown.characters))… (\(text.count) characters)"
    }

    /// The text before the first secret name in invalid JSON.
    private func beforeSecret(in text: String) -> String {
        var rest = text[...]
        while let open = rest.firstIndex(of: "\"") {
            let from = rest.index(after: open)
            guard let close = rest[from...].firstIndex(of: "\"") else {
                // A name or value that is cut off may be a secret.
                return text[..<open] + "\"…"
            }
            if redaction.isSecret(String(rest[from..<close])) { return text[..<from] + "…" }
            rest = rest[rest.index(after: close)...]
        }
        return text
    }
}
