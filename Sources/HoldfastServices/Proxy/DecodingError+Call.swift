// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
public import Holdfast
internal import HoldfastSemantics

extension DecodingError {
    /// What is known about the call whose content could not be decoded, response included; nil if the error is not from a call.
    ///
    /// A ``WebServiceProxy`` throws such errors.
    public var serviceError: ServiceError? { context?.underlyingError as? ServiceError }

    /// The same error, with its call: the method and URL, the status, and how the content begins.
    ///
    /// URL and content are shown only as far as they are safe to log.
    func of(_ method: HttpMethod, _ response: Response, _ content: Data, as type: Any.Type) -> DecodingError {
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
        let line = redactor.finished(safe)
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
