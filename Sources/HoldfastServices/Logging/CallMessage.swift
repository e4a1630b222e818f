// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Holdfast
internal import HoldfastSemantics
internal import HoldfastStorage

#if canImport(FoundationNetworking)
    internal import Foundation
    internal import FoundationNetworking
#else
    internal import Foundation
#endif

/// One message of a logger, put together line by line.
struct CallMessage {
    private static let contentLimit = 1 << 20

    private let logger: CallLogger
    private let credentials: Set<FieldName>
    private var redactor: Redactor
    private var lines: [String]

    init(_ logger: CallLogger, title: String, credentials: Set<FieldName>) {
        self.logger = logger
        self.credentials = credentials
        redactor = Redactor(logger.redaction)
        lines = [title]
    }

    /// The message, without any secret that was met while it was put together.
    var text: String { redactor.finished(lines) }

    /// The request's method and URL, to the first line.
    mutating func add(_ request: URLRequest) {
        lines[0] += " \(request.httpMethod ?? "GET") \(shortened(redactor.url(request.url?.absoluteString ?? "no URL")))"
        // Its secrets are met even where its fields are not shown.
        _ = shown(HeaderFields(request.allHTTPHeaderFields ?? [:]))
    }

    /// The request's fields; the values of those that are not `known` are left out.
    mutating func addFields(of request: URLRequest, known: Set<FieldName>? = nil) {
        let fields = HeaderFields(request.allHTTPHeaderFields ?? [:])
        let all = shown(fields)
        guard logger.showsFields else { return }
        for (line, text) in zip(fields, all) {
            lines.append("  \(line.name): \(known?.contains(line.name) == false ? Redaction.mark : text)")
        }
    }

    /// The response's status, its origin and its fields.
    mutating func add(_ response: Response) {
        lines[0] += " -> \(response.status.rawValue), \(CallMessage.origin(of: response))"
        let all = shown(response.fields)
        guard logger.showsFields else { return }
        for (line, text) in zip(response.fields, all) { lines.append("  \(line.name): \(text)") }
    }

    /// What the call failed with: its kind and its words, not what lies beneath, which may hold the request.
    mutating func add(_ error: any Error) {
        if let error = error as? ServiceError {
            lines[0] += " failed: \(error.code)"
            lines.append("  " + shortened(redactor.text(error.message)))
            if let response = error.response { lines.append("  status \(response.status.rawValue)") }
        } else {
            lines[0] += " failed: \(type(of: error))"
        }
    }

    /// Content, where it may be shown.
    mutating func add(_ body: RequestBody, type: String?) {
        switch body.form {
        case .none: break
        case .bytes(let bytes): add(bytes, type: type)
        case .file, .factory, .oneShot, .requestStream: note("content is streamed and not shown")
        }
    }

    /// Content, where it may be shown.
    mutating func add(_ body: ResponseBody, type: String?) {
        if let bytes = body.bytesInMemory {
            add(bytes, type: type)
        } else {
            note("content is streamed and not shown")
        }
    }

    private mutating func add(_ bytes: ByteChunk, type: String?) {
        guard !bytes.isEmpty, logger.bodyLimit > 0 else { return }
        let type = (type ?? "").lowercased().prefix { $0 != ";" }.filter { $0 != " " }
        let shown: String? =
            if bytes.count > CallMessage.contentLimit {
                nil
            } else if type == "application/json" || type.hasSuffix("+json") {
                redactor.json(bytes.withUnsafeBytes { Data($0) })
            } else if type == "application/x-www-form-urlencoded" {
                redactor.pairs(String(decoding: bytes.array, as: UTF8.self))
            } else {
                nil
            }
        guard let shown else { return note("content of \(bytes.count) bytes is not shown") }
        // Shortened at last, since half a secret would not be known for one.
        lines.append("  " + CallMessage.shortened(redactor.finished([shown]), to: logger.bodyLimit))
    }

    private mutating func note(_ text: String) {
        if logger.bodyLimit > 0 { lines.append("  (\(text))") }
    }

    private mutating func shown(_ fields: HeaderFields) -> [String] {
        fields.map { line in
            redactor.value(of: line, credentials: credentials).map { shortened($0) } ?? Redaction.mark
        }
    }

    private func shortened(_ text: String) -> String {
        CallMessage.shortened(text, to: max(logger.textLimit, 16))
    }

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
