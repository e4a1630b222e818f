// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation
public import Holdfast

#if canImport(FoundationNetworking)
    public import FoundationNetworking
#endif

/// A transport with canned responses: for tests, demonstrations, and work without a server.
///
/// If several mocks match a request, the most specific one answers: one with a query before one without, then the one with most
/// request fields, then one with a method, then the first. A request that no mock matches fails with `.resourceUnavailable`, or
/// goes to the next transport if ``passesUnmatched`` is true.
///
/// It is below the whole pipeline, so its responses are cached, retried, checked and decoded like a server's, and have the same
/// `Response.source`. It keeps no state: equal requests get equal responses, any number of times.
public struct MockDataProvider: Transport {
    /// The mocks, in order.
    public let mocks: [MockData]
    /// Whether requests that no mock matches go to the next transport.
    public let passesUnmatched: Bool
    private let next: (any Transport)?

    /// Creates a provider of these mocks.
    ///
    /// - Parameters:
    ///   - mocks: the mocks; of equally specific ones, the first answers.
    ///   - passesUnmatched: whether requests that no mock matches go to `next`; false by default.
    ///   - next: the transport for these; nil, the default: there is none, and passing on is an error.
    public init(_ mocks: [MockData], passesUnmatched: Bool = false, next: (any Transport)? = nil) {
        self.mocks = mocks
        self.passesUnmatched = passesUnmatched
        self.next = next
    }

    public func send(_ request: URLRequest, body: RequestBody, context: CallContext) async throws -> Response {
        try Task.checkCancellation()
        if let mock = mock(for: request) { return try response(mock, to: request) }
        guard passesUnmatched, let next else {
            let advice =
                passesUnmatched
                ? ", and there is no transport to pass it to. Give the provider a `next`."
                : ". Add one, or set `passesUnmatched` to let requests through."
            throw unavailable("No mock matches \(described(request))" + advice)
        }
        return try await next.send(request, body: body, context: context)
    }

    public func implicitFields(for request: URLRequest) -> HeaderFields {
        guard passesUnmatched, let next, mock(for: request) == nil else { return HeaderFields() }
        return next.implicitFields(for: request)
    }

    public func implicitFields(for request: URLRequest, context: CallContext) -> HeaderFields {
        guard passesUnmatched, let next, mock(for: request) == nil else { return HeaderFields() }
        return next.implicitFields(for: request, context: context)
    }

    public var enforcesDeadline: Bool { next?.enforcesDeadline ?? true }

    /// The mock that answers a request; nil if none matches.
    public func mock(for request: URLRequest) -> MockData? {
        guard let text = request.url?.absoluteString, let uri = try? TargetURI(mapping: text) else { return nil }
        let target = QueryOptions(sortsNames: true).applied(to: uri)
        let method = HttpMethod(rawValue: request.httpMethod ?? "GET")
        let header = HeaderFields(request.allHTTPHeaderFields ?? [:])
        var best: (mock: MockData, fit: MockData.Fit)?
        for mock in mocks {
            guard let fit = mock.fit(target, method: method, header: header) else { continue }
            if let found = best, found.fit >= fit { continue }
            best = (mock, fit)
        }
        return best?.mock
    }

    private func response(_ mock: MockData, to request: URLRequest) throws -> Response {
        var body = ResponseBody()
        if request.httpMethod != "HEAD" {
            switch mock.content.kind {
            case .bytes(let data): body = ResponseBody(ByteChunk(copying: data))
            case .file(let url):
                do {
                    body = ResponseBody(ByteChunk(copying: try Data(contentsOf: url)))
                } catch {
                    throw unavailable(
                        "The file with the content of the mock for \(described(request)) cannot be read: "
                            + "\(url.lastPathComponent); check its path and permissions.",
                        cause: error
                    )
                }
            }
        }
        return Response(status: mock.status, fields: mock.fields, body: body, url: request.url)
    }

    private func unavailable(_ message: String, cause: (any Error)? = nil) -> ServiceError {
        ServiceError(.resourceUnavailable, message, cause: cause, progress: .notSent)
    }

    /// Method and URL for a log: without user information, and without the values of the query.
    private func described(_ request: URLRequest) -> String {
        let method = request.httpMethod ?? "GET"
        guard let text = request.url?.absoluteString, let target = try? TargetURI(mapping: text) else {
            return "a \(method) without a URL"
        }
        let names = (target.query ?? "").split(separator: "&").map { $0.prefix { $0 != "=" } + "=…" }
        return "\(method) \(target.origin)\(target.path)" + (names.isEmpty ? "" : "?" + names.joined(separator: "&"))
    }
}

/// A canned response, and the requests it is for.
public struct MockData: Sendable {
    /// The content of a mock's response; new kinds may be added.
    public struct Content: Sendable {
        enum Kind: Sendable {
            case bytes(Data)
            case file(URL)
        }

        let kind: Kind

        /// No content.
        public static let empty = Content(kind: .bytes(Data()))
        /// Bytes.
        public static func data(_ data: Data) -> Content { Content(kind: .bytes(data)) }
        /// Text, as UTF-8.
        public static func text(_ text: String) -> Content { Content(kind: .bytes(Data(text.utf8))) }
        /// A file, read again for each request.
        public static func file(_ url: URL) -> Content { Content(kind: .file(url)) }
    }

    /// The URL, in its canonical form. A URL without a query matches any query and none; one with a query matches that query,
    /// in any order of names.
    public let target: TargetURI
    /// The method; nil means any.
    public let method: HttpMethod?
    /// Fields that a request must have, each with this value.
    public let requestFields: HttpHeader
    /// The status of the response.
    public let status: StatusCode
    /// The fields of the response.
    public let fields: HttpHeader
    /// The content of the response.
    public let content: Content

    /// Creates a mock for requests to a URL.
    ///
    /// - Parameters:
    ///   - url: an absolute http or https URL; user information and fragment are ignored.
    ///   - method: nil, the default, means any.
    ///   - requestFields: fields that a request must also have; none by default.
    ///   - status: 200 by default.
    ///   - fields: none by default.
    ///   - content: empty by default; not sent in response to HEAD.
    /// - Throws: `ServiceError` `.badRequest` if the URL is invalid, or the status is not final (200 to 599).
    public init(
        _ url: any UrlConvertible,
        method: HttpMethod? = nil,
        requestFields: HttpHeader = [:],
        status: Int = 200,
        fields: HttpHeader = [:],
        content: Content = .empty
    ) throws {
        do {
            target = QueryOptions(sortsNames: true).applied(to: try TargetURI(mapping: url.urlText))
        } catch {
            throw ServiceError.badRequest("The URL of a mock is not an absolute http or https URL: \(error)")
        }
        guard (200...599).contains(status) else {
            throw ServiceError.badRequest("The status of a mock is \(status); give it a final one, 200 to 599.")
        }
        self.method = method
        self.requestFields = requestFields
        self.status = StatusCode(rawValue: status)
        self.fields = fields
        self.content = content
    }

    /// Whether this mock matches a request, and how specific it is: a query counts most, then each field, then the method.
    func fit(_ target: TargetURI, method: HttpMethod, header: HttpHeader) -> Fit? {
        guard target.origin == self.target.origin, target.path == self.target.path,
            self.target.query == nil || self.target.query == target.query,
            self.method == nil || self.method == method,
            requestFields.allSatisfy({ header[$0.name] == requestFields[$0.name] })
        else { return nil }
        return Fit(
            hasQuery: self.target.query != nil,
            fieldCount: Set(requestFields.map(\.name)).count,
            hasMethod: self.method != nil
        )
    }

    /// How specific a matching mock is.
    struct Fit: Comparable {
        let hasQuery: Bool
        let fieldCount: Int
        let hasMethod: Bool

        private var rank: (Int, Int, Int) { (hasQuery ? 1 : 0, fieldCount, hasMethod ? 1 : 0) }

        static func < (left: Fit, right: Fit) -> Bool { left.rank < right.rank }
    }
}

extension MockDataProvider {
    /// Creates a provider from a JSON file: an object whose `mocks` is an array of objects, as
    /// `docs/services/mocking-and-logging.md` describes them.
    ///
    /// - Parameters:
    ///   - file: read once, here. Paths of `bodyFile` are relative to its folder, and read for each request.
    ///   - passesUnmatched: as for ``init(_:passesUnmatched:next:)``.
    ///   - next: as for ``init(_:passesUnmatched:next:)``.
    /// - Throws: `ServiceError` `.resourceUnavailable` if the file cannot be read, `.decodingFailed` if it is invalid; the
    ///   message names the mock, counted from 1, and the key.
    public init(contentsOf file: URL, passesUnmatched: Bool = false, next: (any Transport)? = nil) throws {
        let data: Data
        do {
            data = try Data(contentsOf: file)
        } catch {
            throw ServiceError(
                .resourceUnavailable,
                "The file of mocks \(file.lastPathComponent) cannot be read; check its path and permissions.",
                cause: error
            )
        }
        let reader = MockFileReader(name: file.lastPathComponent, folder: file.deletingLastPathComponent())
        self.init(try reader.mocks(in: data), passesUnmatched: passesUnmatched, next: next)
    }
}

/// Reads a file of mocks and says exactly what is wrong with it.
struct MockFileReader {
    let name: String
    let folder: URL

    private static let keys: Set<String> = [
        "url", "method", "requestFields", "status", "fields", "body", "json", "bodyFile",
    ]

    func mocks(in data: Data) throws -> [MockData] {
        let root: Any
        do {
            root = try JSONSerialization.jsonObject(with: data)
        } catch {
            throw ServiceError(.decodingFailed, "\(name) is not valid JSON.", cause: error)
        }
        guard let object = root as? [String: Any], let list = object["mocks"] as? [Any] else {
            throw wrong("the file must be an object whose \"mocks\" is an array")
        }
        if let other = object.keys.filter({ $0 != "mocks" }).min() { throw wrong("there is no key \"\(other)\"") }
        return try list.enumerated().map { index, entry in
            try mock(entry, place: "mock \(index + 1): ")
        }
    }

    private func mock(_ entry: Any, place: String) throws -> MockData {
        guard let entry = entry as? [String: Any] else { throw wrong(place + "it must be an object") }
        if let other = entry.keys.filter({ !Self.keys.contains($0) }).min() {
            throw wrong(
                place + "there is no key \"\(other)\"; the keys are \(Self.keys.sorted().joined(separator: ", "))"
            )
        }
        guard let url: String = try value("url", of: entry, place: place, kind: "a text") else {
            throw wrong(place + "\"url\" is missing")
        }
        let status: Int = try value("status", of: entry, place: place, kind: "a whole number") ?? 200
        var method: HttpMethod?
        if let text: String = try value("method", of: entry, place: place, kind: "a text") {
            method = HttpMethod(validating: text)
            if method == nil { throw wrong(place + "\"method\" is not a method (RFC 9110 §9.1)") }
        }
        var header = try fields("fields", of: entry, place: place)
        let content = try content(of: entry, place: place, header: &header)
        do {
            return try MockData(
                url,
                method: method,
                requestFields: try fields("requestFields", of: entry, place: place),
                status: status,
                fields: header,
                content: content
            )
        } catch let error as ServiceError where error.code == .badRequest {
            throw wrong(place + error.message)
        }
    }

    private func content(of entry: [String: Any], place: String, header: inout HttpHeader) throws
        -> MockData.Content
    {
        let given = ["body", "json", "bodyFile"].filter { entry[$0] != nil }
        guard given.count <= 1 else {
            throw wrong(place + "it has " + given.map { "\"\($0)\"" }.joined(separator: " and ") + "; keep one of them")
        }
        if let text: String = try value("body", of: entry, place: place, kind: "a text") { return .text(text) }
        if let path: String = try value("bodyFile", of: entry, place: place, kind: "a text") {
            return .file(URL(fileURLWithPath: path, relativeTo: folder).absoluteURL)
        }
        guard let json = entry["json"] else { return .empty }
        if !header.contains(.contentType) { header[.contentType] = "application/json" }
        return .data(try JSONSerialization.data(withJSONObject: json, options: [.fragmentsAllowed, .sortedKeys]))
    }

    private func fields(_ key: String, of entry: [String: Any], place: String) throws -> HttpHeader {
        var header = HttpHeader()
        let object: [String: Any] = try value(key, of: entry, place: place, kind: "an object of texts") ?? [:]
        for (name, value) in object.sorted(by: { $0.key < $1.key }) {
            guard let text = value as? String else { throw wrong(place + "\"\(key)\" must be an object of texts") }
            guard header.append(rawName: name, value: text) else {
                throw wrong(place + "\"\(name)\" in \"\(key)\" is not the name of a field (RFC 9110 §5.1)")
            }
        }
        return header
    }

    private func value<Value>(_ key: String, of entry: [String: Any], place: String, kind: String) throws -> Value? {
        guard let found = entry[key] else { return nil }
        guard let value = found as? Value else { throw wrong(place + "\"\(key)\" must be \(kind)") }
        return value
    }

    private func wrong(_ what: String) -> ServiceError {
        ServiceError(.decodingFailed, "In \(name), \(what)" + (what.hasSuffix(".") ? "" : "."))
    }
}
