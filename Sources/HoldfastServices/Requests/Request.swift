// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation
public import Holdfast

#if canImport(FoundationNetworking)
    public import FoundationNetworking
#endif

/// One kind of request to an API, and its result; everything has a default if ``Result`` is `Void`, `Data` or `String`, and in
/// a ``JsonRequest``.
///
/// Send it with ``schedule(with:)``. The request is built in this order: URL, scheme, method, route, query, header (the
/// service's, its asynchronous one, its credential, the request's own; each overrides those before), body, and finally
/// ``prepare(_:)``. It is built before anything is scheduled; if that fails, nothing is sent.
public protocol Request: Sendable {
    /// The type that a response is decoded to.
    associatedtype Result: Sendable

    /// Replaces the service's ``HttpService/apiUrl``; nil by default. The service's headers and credential are sent there too,
    /// so another host needs ``authorizationRequirement`` `.none` unless it may see them.
    var url: (any UrlConvertible)? { get }
    /// Whether the request uses https, whatever the service and the text of the URL say; nil, the default: as they say.
    var usesSecureProtocol: Bool? { get }
    /// The method; GET by default.
    var method: HttpMethod { get }
    /// The path below the service's URL; empty by default.
    var routes: HttpRoute { get throws }
    /// The query arguments; none by default.
    var query: HttpQuery { get throws }
    /// Fields of this request; none by default.
    ///
    /// A field counts as a credential if its name says so, like X-Api-Key, or if `credentialFields` of ``options`` includes it.
    var header: HttpHeader { get throws }
    /// The content; empty by default. Its content type is set unless a header sets one.
    var body: HttpBody { get throws }
    /// Whether the service's credential is sent; `.optional` by default.
    var authorizationRequirement: AuthorizationRequirement { get }
    /// The statuses that are a success; 200 to 299 by default.
    var acceptedStatusCodes: ClosedRange<Int> { get }
    /// How urgent it is; `.userInitiated` by default.
    var priority: RequestPriority { get }
    /// The time that the whole call may take until its content has arrived, including building the request, waits and retries;
    /// nil, the default: only the pipeline's limits.
    ///
    /// It does not interrupt a hook; the time is checked again after the hook.
    var timeout: Duration? { get }
    /// Other options of each call: cache directive, principal, tags, retry rules; all defaults by default.
    var options: CallOptions { get }
    /// The most bytes of content to read; 64 MiB by default.
    var contentLimit: Int { get }

    /// Makes the final changes to the request after it was built. The content of ``body`` is separate; an `httpBody` or
    /// `httpBodyStream` that is set here replaces it.
    ///
    /// Called when a call is made, and again before each retry: changes to the header fields and to the query and user of the
    /// URL are sent. A field that it adds or changes counts as a credential, like those of the service.
    func prepare(_ request: URLRequest) async throws -> URLRequest

    /// Receives a response: by default reads its content and passes both to ``accept(_:content:)``.
    ///
    /// Runs within the call, below the hooks of scope `.call`. Leave a body in the response that can still be read.
    func receive(_ response: inout Response) async throws -> Result

    /// Checks a response and makes the result, or throws to reject it: by default checks the status and decodes the content.
    ///
    /// May be called more than once for one call, and on content from a cache.
    func accept(_ response: Response, content: Data) throws -> Result

    /// Makes the result from the content of an accepted response.
    func decode(_ data: Data) throws -> Result

    /// Decides what happens to a call whose response was rejected: by default it fails with `error`.
    func handle(_ error: any Error, response: Response) -> ErrorHandling
}

/// What happens to a call whose response was rejected; closed.
public enum ErrorHandling: Sendable {
    /// The call fails with this error.
    case error(any Error)
    /// The same request, including its content, is sent to another URL, without credentials if that is another origin. A call
    /// is redirected 16 times at most.
    case redirect(to: URL)
}

/// How urgent a request is; closed.
public enum RequestPriority: Sendable, Hashable {
    /// Not urgent: nobody is waiting for it.
    case utility
    /// Neither of the other two.
    case `default`
    /// A person is waiting for it.
    case userInitiated
}

extension Request {
    public var url: (any UrlConvertible)? { nil }
    public var usesSecureProtocol: Bool? { nil }
    public var method: HttpMethod { .get }
    public var routes: HttpRoute { get throws { HttpRoute() } }
    public var query: HttpQuery { get throws { HttpQuery() } }
    public var header: HttpHeader { get throws { HttpHeader() } }
    public var body: HttpBody { get throws { .empty } }
    public var authorizationRequirement: AuthorizationRequirement { .optional }
    public var acceptedStatusCodes: ClosedRange<Int> { 200...299 }
    public var priority: RequestPriority { .userInitiated }
    public var timeout: Duration? { nil }
    public var options: CallOptions { CallOptions() }
    public var contentLimit: Int { 64 << 20 }
    public func prepare(_ request: URLRequest) async throws -> URLRequest { request }
    public func handle(_ error: any Error, response: Response) -> ErrorHandling { .error(error) }

    public func receive(_ response: inout Response) async throws -> Result {
        let isRefused = !acceptedStatusCodes.contains(response.status.rawValue)
        let content = try await response.takeContent(upTo: contentLimit, isRefused: isRefused, method: method)
        return try accept(response, content: content)
    }

    public func accept(_ response: Response, content: Data) throws -> Result {
        guard acceptedStatusCodes.contains(response.status.rawValue) else {
            throw ServiceError.refused(response, expected: acceptedStatusCodes)
        }
        do {
            return try decode(content)
        } catch {
            throw ServiceError.decodingFailed(as: Result.self, cause: error, response)
        }
    }

    /// Sends the request and returns its decoded response.
    ///
    /// - Throws: the error that the service's ``HttpService/mapError(_:)`` returns; by default `ServiceError` or
    ///   `CancellationError`.
    public func schedule<Service>(with client: ServiceClient<Service>) async throws(Service.RequestError) -> Result {
        try await client.response(to: self).value
    }
}

extension Request where Result == Void {
    public func decode(_ data: Data) throws {}
}

extension Request where Result == Data {
    public func decode(_ data: Data) throws -> Data { data }
}

extension Request where Result == String {
    public func decode(_ data: Data) throws -> String { try ServiceError.text(of: data) }
}

extension ServiceError {
    /// The text of bytes that have to be UTF-8.
    ///
    /// - name: what they are, for the error.
    static func text(of bytes: Data, named name: String = "content") throws -> String {
        guard let text = String(data: bytes, encoding: .utf8) else {
            throw ServiceError(.decodingFailed, "The \(name) is not UTF-8; decode it as Data.")
        }
        return text
    }
}

/// A request whose response is JSON.
///
/// If ``Request/Result`` is an Optional, a response without content is nil.
public protocol JsonRequest: Request where Result: Decodable {
    /// Decodes the response; by default that of ``ServiceJSON``, with keys converted from snake_case to camelCase.
    var decoder: JSONDecoder { get }
}

extension JsonRequest {
    public var decoder: JSONDecoder { ServiceJSON.decoder(keys: .convertFromSnakeCase) }

    public func decode(_ data: Data) throws -> Result {
        try ServiceJSON.decode(Result.self, from: data, by: decoder)
    }
}

/// A request made from values instead of its own type, for calls that are made in only one place.
public struct AnyRequest<Result: Sendable>: Request {
    public var url: (any UrlConvertible)?
    public var usesSecureProtocol: Bool?
    public var method: HttpMethod
    public var routes: HttpRoute
    public var query: HttpQuery
    public var header: HttpHeader
    public var body: HttpBody
    public var authorizationRequirement = AuthorizationRequirement.optional
    public var acceptedStatusCodes: ClosedRange<Int> = 200...299
    public var priority = RequestPriority.userInitiated
    public var timeout: Duration?
    public var options = CallOptions()
    public var contentLimit = 64 << 20
    /// Makes the final changes to the request: ``prepare(_:)``.
    public var preparing: @Sendable (URLRequest) async throws -> URLRequest = { $0 }
    /// Makes the result from the content: ``decode(_:)``.
    public var decoding: @Sendable (Data) throws -> Result

    /// A request.
    ///
    /// - Parameters:
    ///   - method: GET by default.
    ///   - url: replaces the service's.
    ///   - routes: the path below the service's URL.
    ///   - query: the query arguments.
    ///   - header: fields of this request.
    ///   - body: the content.
    ///   - decode: makes the result from the content.
    public init(
        _ method: HttpMethod = .get,
        url: (any UrlConvertible)? = nil,
        routes: HttpRoute = HttpRoute(),
        query: HttpQuery = HttpQuery(),
        header: HttpHeader = HttpHeader(),
        body: HttpBody = .empty,
        decode: @escaping @Sendable (Data) throws -> Result
    ) {
        self.method = method
        self.url = url
        self.routes = routes
        self.query = query
        self.header = header
        self.body = body
        decoding = decode
    }

    public func prepare(_ request: URLRequest) async throws -> URLRequest { try await preparing(request) }

    public func decode(_ data: Data) throws -> Result { try decoding(data) }
}

extension AnyRequest where Result == Data {
    /// A request whose result is the unchanged content of its response.
    public init(
        _ method: HttpMethod = .get,
        url: (any UrlConvertible)? = nil,
        routes: HttpRoute = HttpRoute(),
        query: HttpQuery = HttpQuery(),
        header: HttpHeader = HttpHeader(),
        body: HttpBody = .empty
    ) {
        self.init(method, url: url, routes: routes, query: query, header: header, body: body) { $0 }
    }
}

extension Response {
    /// Reads all of the content and makes it the response's body; of a refused response, reads as much as there is.
    ///
    /// - Parameters:
    ///   - limit: the most bytes. Longer content is an error if the response is accepted. Of a refused one only the first bytes
    ///     are taken: its status and fields matter more than its length, or how it ended.
    ///   - isRefused: whether its status is refused.
    /// - Throws: `.bodyTooLarge`, the failure that ended the body, `CancellationError`.
    mutating func takeContent(upTo limit: Int, isRefused: Bool, method: HttpMethod) async throws -> Data {
        let bytes: ByteChunk
        if isRefused, let source = body.source {
            var first: [UInt8] = []
            do {
                while first.count < limit, let chunk = try await source.next() { chunk.append(to: &first) }
            } catch {
                if error.isCancellation { throw error }
            }
            source.cancel()
            bytes = ByteChunk(Array(first.prefix(limit)))
        } else if isRefused {
            bytes = ByteChunk(Array((body.bytesInMemory ?? ByteChunk()).array.prefix(limit)))
        } else {
            let length = body.length
            bytes = try await body.collect(upTo: limit)
            try checkEnd(after: bytes.count, of: length, method: method.rawValue)
        }
        body = ResponseBody(bytes)
        return bytes.data
    }
}

extension ByteChunk {
    /// The bytes, copied.
    var data: Data { withUnsafeBytes { Data($0) } }
}
