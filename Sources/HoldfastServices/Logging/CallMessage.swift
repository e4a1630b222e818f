// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Holdfast

#if canImport(FoundationNetworking)
    internal import Foundation
    internal import FoundationNetworking
#else
    internal import Foundation
#endif

/// One message of a logger, built line by line.
struct CallMessage {
    private static let contentLimit = 256 << 10

    private let logger: CallLogger
    private let credentials: Set<FieldName>
    private var redactor: Redactor
    private var lines: [(text: String, limit: Int)]
    /// The first line without what may contain a secret.
    private var plainTitle: String

    init(_ logger: CallLogger, title: String, credentials: Set<FieldName>) {
        self.logger = logger
        self.credentials = credentials
        redactor = Redactor(logger.redaction)
        lines = [(title, max(logger.textLimit, 16))]
        plainTitle = title
    }

    /// The message, without any secret that was found while it was built.
    ///
    /// Lines are shortened last, because half a secret would not be recognized.
    var text: String {
        let count = redactor.secrets.count
        guard count <= Redactor.mostSecrets else {
            let note = "  (\(count) secrets, too many to search for: nothing else is shown)"
            return Redactor(logger.redaction).finished([plainTitle, note]).joined(separator: "\n")
        }
        return zip(redactor.finished(lines.map(\.text)), lines)
            .map { CallMessage.shortened($0, to: $1.limit) }.joined(separator: "\n")
    }

    private mutating func addToTitle(_ text: String, url: String = "") {
        lines[0].text += text + url
        plainTitle += text
    }

    /// Adds the request's method and URL to the first line.
    mutating func add(_ request: URLRequest) {
        addToTitle(" \(request.httpMethod ?? "GET")", url: " \(redactor.url(request.url?.absoluteString ?? "no URL"))")
        // Its secrets are noted even if its fields are not shown.
        _ = shown(HeaderFields(request.allHTTPHeaderFields ?? [:]))
    }

    /// Adds the request's fields.
    mutating func addFields(of request: URLRequest) { add(HeaderFields(request.allHTTPHeaderFields ?? [:])) }

    private mutating func add(_ fields: HeaderFields) {
        // Their secrets are noted even if they are not shown.
        let all = shown(fields)
        guard logger.showsFields else { return }
        for (line, text) in zip(fields, all) { add("\(line.name): \(text)") }
    }

    /// Adds the response's status, source and fields, and its content if it may be shown.
    mutating func add(_ response: Response) {
        addToTitle(" -> \(response.status.rawValue), \(CallMessage.origin(of: response))")
        add(response.fields)
        let type = response.fields[.contentType]
        if let bytes = response.body.bytesInMemory { add(bytes, type: type) } else { noteStream() }
    }

    /// Adds the error's kind and message, but not its cause, which may contain the request.
    mutating func add(_ error: any Error) {
        if let error = error as? ServiceError {
            addToTitle(" failed: \(error.code)")
            add(redactor.text(error.message))
            if let response = error.response { add("status \(response.status.rawValue)") }
        } else {
            addToTitle(" failed: \(type(of: error))")
        }
    }

    /// Adds that the caller no longer waits for the call.
    mutating func addCancellation() { addToTitle(" cancelled") }

    /// Notes the secrets of content that is not shown, because they may occur in what is shown.
    mutating func meet(_ body: RequestBody, type: String?) {
        guard case .bytes(let bytes) = body.form else { return }
        _ = shown(bytes, type: type)
    }

    /// Adds the content if it may be shown.
    mutating func add(_ body: RequestBody, type: String?) {
        switch body.form {
        case .none: break
        case .bytes(let bytes): add(bytes, type: type)
        case .file, .factory, .oneShot, .requestStream: noteStream()
        }
    }

    private mutating func noteStream() { note("content is streamed and not shown") }

    private mutating func add(_ bytes: ByteChunk, type: String?) {
        // Its secrets are noted even if it is not shown.
        let shown = shown(bytes, type: type)
        guard !bytes.isEmpty, logger.bodyLimit > 0 else { return }
        guard let shown else { return note("content of \(bytes.count) bytes is not shown") }
        lines.append(("  " + shown, logger.bodyLimit))
    }

    /// The text of content of a type in which secrets can be found by name; nil if it is of another type or too long.
    private mutating func shown(_ bytes: ByteChunk, type: String?) -> String? {
        guard bytes.count <= CallMessage.contentLimit else { return nil }
        let type = (type ?? "").lowercased().prefix { $0 != ";" }.filter { $0 != " " }
        if type == "application/json" || type.hasSuffix("+json") {
            return redactor.json(bytes.data)
        }
        guard type == "application/x-www-form-urlencoded" else { return nil }
        // It may be JSON in truth, whose secrets would be divided at `&`.
        _ = redactor.json(bytes.data)
        return redactor.arguments(String(decoding: bytes.array, as: UTF8.self))
    }

    private mutating func note(_ text: String) { if logger.bodyLimit > 0 { add("(\(text))") } }

    private mutating func shown(_ fields: HeaderFields) -> [String] {
        fields.map { line in
            redactor.value(of: line, credentials: credentials) ?? Redaction.mark
        }
    }

    private mutating func add(_ text: String) { lines.append(("  " + text, textLimit)) }

    private var textLimit: Int { max(logger.textLimit, 16) }

    private static func shortened(_ text: String, to limit: Int) -> String {
        text.count <= limit ? text : "\(text.prefix(limit))… (\(text.count) characters)"
    }

    private static func origin(of response: Response) -> String {
        switch response.source {
        case .network(let attempts): attempts == 1 ? "network" : "network, \(attempts) attempts"
        case .fresh: "stored, fresh"
        case .stale: "stored, stale"
        case .revalidated: "stored, revalidated"
        case .collapsed: "another call's"
        case .inProcess: "in process"
        case .synthesized: "synthesized"
        }
    }
}
