// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Holdfast
public import HoldfastSemantics
private import HoldfastStorage

#if canImport(FoundationNetworking)
    internal import Foundation
    public import FoundationNetworking
#else
    public import Foundation
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
        guard passesUnmatched else {
            throw ServiceError(
                .resourceUnavailable,
                "No mock matches \(described(request)). Add one, or set `passesUnmatched` to let requests through.",
                progress: .notSent
            )
        }
        guard let next else {
            throw ServiceError(
                .resourceUnavailable,
                "No mock matches \(described(request)), and there is no transport to pass it to. Give the provider a `next`.",
                progress: .notSent
            )
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
                    throw ServiceError(
                        .resourceUnavailable,
                        "The file with the content of the mock for \(described(request)) cannot be read: "
                            + "\(url.lastPathComponent); check its path and permissions.",
                        cause: error,
                        progress: .notSent
                    )
                }
            }
        }
        return Response(status: mock.status, fields: mock.fields, body: body, url: request.url)
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
