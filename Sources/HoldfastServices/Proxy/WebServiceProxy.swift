// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation
public import Holdfast

#if canImport(FoundationNetworking)
    public import FoundationNetworking
#endif

/// Calls a web service by method, path and arguments, and decodes its responses.
///
/// ```swift
/// let proxy = WebServiceProxy(session: .shared, baseURL: url, cache: .default, retrierFactory: .default)
/// let numbers: [Int] = try await proxy.invoke(.get, path: "test/fibonacci", arguments: ["count": 8])
/// ```
///
/// Create it once and keep it: cache and retry budgets live as long as it does. Copies, also those with other ``headers``,
/// share transport, cache, hooks and retrier factory, and may be used from any number of tasks.
public struct WebServiceProxy: Sendable {
    /// The method of a request: `.get`, `.post`, `.put`, `.delete`, `.patch`, `.head` or any other token.
    public typealias Method = HttpMethod

    /// The value of an argument that is left out.
    public static let undefined = QueryArgument.undefined

    /// The URL that all paths are below.
    public let baseURL: URL

    /// Fields of every request; none by default.
    ///
    /// They count as credentials, except those that are known to hold none, such as User-Agent: a cache keeps responses apart
    /// by them, and they are removed when a redirect leaves the origin.
    public var headers = HttpHeader()

    /// Other options of each call: cache directive, principal, tags, retry rules. Empty by default.
    public var options = CallOptions()

    /// How long one call may take, retries and content included; nil, the default: only the configuration's limits apply.
    public var timeout: Duration?

    /// The most bytes of content to read; a longer response fails with `.bodyTooLarge`. 64 MiB by default.
    public var contentLimit = 64 << 20

    let client: ServiceClient<ProxyService>

    /// Creates a proxy of the service at `baseURL` that sends through `transport`.
    ///
    /// - Parameters:
    ///   - transport: sends the requests; by default a new URLSession without cookies, credentials or a disk cache.
    ///   - baseURL: an http or https URL. If it has a query, every call sends it.
    ///   - cache: stores responses and answers from them by RFC 9111; nil, the default: no cache.
    ///   - retrierFactory: makes the retrier of each call that fails; by default each request is sent once.
    ///   - hooks: take part in each call and see requests and responses, in this order.
    ///   - requestHooks: take part in each call and see decoded results, above `hooks`, in this order.
    ///   - configuration: clock, time limits, redirects, renewable credentials, observers.
    public init(
        transport: any Transport = URLSessionTransport(),
        baseURL: URL,
        cache: HTTPCache? = nil,
        retrierFactory: any RetrierFactory = .never,
        hooks: [any ServiceHook] = [],
        requestHooks: [any RequestHook] = [],
        configuration: PipelineConfiguration = PipelineConfiguration()
    ) {
        self.baseURL = baseURL
        client = ServiceClient(
            ProxyService(baseURL: baseURL),
            transport: transport,
            cache: cache,
            retrierFactory: retrierFactory,
            hooks: hooks,
            requestHooks: requestHooks,
            configuration: configuration
        )
    }

    /// Creates a proxy of the service at `baseURL` that sends through an existing session.
    ///
    /// The session is not invalidated; `URLSessionTransport(session:)` says how it is used. The other parameters are those of
    /// ``init(transport:baseURL:cache:retrierFactory:hooks:requestHooks:configuration:)``.
    public init(
        session: URLSession,
        baseURL: URL,
        cache: HTTPCache? = nil,
        retrierFactory: any RetrierFactory = .never,
        hooks: [any ServiceHook] = [],
        requestHooks: [any RequestHook] = [],
        configuration: PipelineConfiguration = PipelineConfiguration()
    ) {
        self.init(
            transport: URLSessionTransport(session: session),
            baseURL: baseURL,
            cache: cache,
            retrierFactory: retrierFactory,
            hooks: hooks,
            requestHooks: requestHooks,
            configuration: configuration
        )
    }

    /// The pipeline below all calls; for other requests, `drain()`, or its cache.
    public var pipeline: Pipeline { client.pipeline }

    /// The same proxy, with these fields added to its requests; they replace fields with the same name, ignoring case.
    public func with(headers: HttpHeader) -> WebServiceProxy {
        var proxy = self
        proxy.headers = self.headers + headers
        return proxy
    }
}

/// Makes the result from a response's content.
///
/// Called only for accepted responses, on the task of the call, and again if a stored response is reused.
///
/// - Parameters:
///   - content: the content, empty if there is none.
///   - contentType: its media type in lower case, without parameters; nil if the response has none.
public typealias ResponseHandler<T> = @Sendable (_ content: Data, _ contentType: String?) throws -> T

/// All of these throw ``WebServiceError`` for a status outside 200 to 299 and for invalid arguments and paths, `URLError` if
/// the exchange failed, `EncodingError` unchanged, `DecodingError` with the call and the beginning of the content in its
/// `debugDescription` (unchanged if a response handler threw it), `CancellationError` promptly, and ``ServiceError`` for errors
/// that have no matching `URLError`.
extension WebServiceProxy {
    /// Calls the service and ignores the content of the response.
    ///
    /// - Parameters:
    ///   - method: the method.
    ///   - path: the path below ``baseURL``, percent-encoded if necessary; it may have a query. Empty: the base itself.
    ///   - arguments: query arguments by name, for every method; nil and ``undefined`` are left out, arrays repeat the name.
    ///   - content: the content to send; none by default.
    ///   - contentType: its media type; by default the one in ``headers``, or else `application/octet-stream`. Not sent without
    ///     content.
    public func invoke(
        _ method: Method,
        path: String,
        arguments: [String: (any QueryArgumentConvertible)?] = [:],
        content: Data? = nil,
        contentType: String? = nil
    ) async throws {
        try await response(method, path: path, arguments: arguments, content: content, contentType: contentType).value
    }

    /// Sends a value as JSON and ignores the content of the response.
    ///
    /// - Parameters:
    ///   - method: the method.
    ///   - path: the path below ``baseURL``, percent-encoded if necessary; it may have a query. Empty: the base itself.
    ///   - arguments: query arguments by name, for every method; nil and ``undefined`` are left out, arrays repeat the name.
    ///   - body: sent with dates as milliseconds since 1970 and sorted keys; its media type is the one in ``headers``, or else
    ///     `application/json`.
    public func invoke<B: Encodable>(
        _ method: Method,
        path: String,
        arguments: [String: (any QueryArgumentConvertible)?] = [:],
        body: B
    ) async throws {
        try await response(method, path: path, arguments: arguments, body: body).value
    }

    /// Calls the service and decodes its JSON response.
    ///
    /// Dates are read as milliseconds since 1970. Empty content is nil if `T` is an Optional, otherwise a `DecodingError`.
    public func invoke<T: Decodable & Sendable>(
        _ method: Method,
        path: String,
        arguments: [String: (any QueryArgumentConvertible)?] = [:],
        content: Data? = nil,
        contentType: String? = nil
    ) async throws -> T {
        try await response(method, path: path, arguments: arguments, content: content, contentType: contentType).value
    }

    /// Sends a value as JSON and decodes the JSON response.
    public func invoke<B: Encodable, T: Decodable & Sendable>(
        _ method: Method,
        path: String,
        arguments: [String: (any QueryArgumentConvertible)?] = [:],
        body: B
    ) async throws -> T {
        try await response(method, path: path, arguments: arguments, body: body).value
    }

    /// Calls the service; `responseHandler` makes the result from the response.
    ///
    /// - Parameters:
    ///   - method: the method.
    ///   - path: the path below ``baseURL``, percent-encoded if necessary; it may have a query. Empty: the base itself.
    ///   - arguments: query arguments by name, for every method; nil and ``undefined`` are left out, arrays repeat the name.
    ///   - content: the content to send; none by default.
    ///   - contentType: its media type; by default the one in ``headers``, or else `application/octet-stream`. Not sent without
    ///     content.
    ///   - responseHandler: makes the result; an error that it throws fails the call and is thrown unchanged.
    public func invoke<T: Sendable>(
        _ method: Method,
        path: String,
        arguments: [String: (any QueryArgumentConvertible)?] = [:],
        content: Data? = nil,
        contentType: String? = nil,
        responseHandler: @escaping ResponseHandler<T>
    ) async throws -> T {
        let content = Content.data(content, type: contentType)
        let answer = try await send(
            method,
            path: path,
            arguments: arguments,
            content: content,
            handler: responseHandler
        )
        return answer.value
    }
}

/// The same calls with details of how they went: the source of the response, its attempts, what the cache did.
extension WebServiceProxy {
    /// Calls the service; like `invoke` without a result.
    public func response(
        _ method: Method,
        path: String,
        arguments: [String: (any QueryArgumentConvertible)?] = [:],
        content: Data? = nil,
        contentType: String? = nil
    ) async throws -> DecodedResponse<Void> {
        try await send(method, path: path, arguments: arguments, content: .data(content, type: contentType)) { _, _ in }
    }

    /// Sends a value as JSON; like `invoke` with a body and without a result.
    public func response<B: Encodable>(
        _ method: Method,
        path: String,
        arguments: [String: (any QueryArgumentConvertible)?] = [:],
        body: B
    ) async throws -> DecodedResponse<Void> {
        try await send(method, path: path, arguments: arguments, content: .json(body)) { _, _ in }
    }

    /// Calls the service and decodes its JSON response; like `invoke` with a JSON result.
    public func response<T: Decodable & Sendable>(
        _ method: Method,
        path: String,
        arguments: [String: (any QueryArgumentConvertible)?] = [:],
        content: Data? = nil,
        contentType: String? = nil
    ) async throws -> DecodedResponse<T> {
        try await decoding(method, path: path, arguments: arguments, content: .data(content, type: contentType))
    }

    /// Sends a value as JSON and decodes the JSON response; like `invoke` with JSON both ways.
    public func response<B: Encodable, T: Decodable & Sendable>(
        _ method: Method,
        path: String,
        arguments: [String: (any QueryArgumentConvertible)?] = [:],
        body: B
    ) async throws -> DecodedResponse<T> {
        try await decoding(method, path: path, arguments: arguments, content: .json(body))
    }

    /// Calls the service; `responseHandler` makes the result; like `invoke` with a handler.
    public func response<T: Sendable>(
        _ method: Method,
        path: String,
        arguments: [String: (any QueryArgumentConvertible)?] = [:],
        content: Data? = nil,
        contentType: String? = nil,
        responseHandler: @escaping ResponseHandler<T>
    ) async throws -> DecodedResponse<T> {
        let content = Content.data(content, type: contentType)
        return try await send(method, path: path, arguments: arguments, content: content, handler: responseHandler)
    }

    private func decoding<T: Decodable & Sendable>(
        _ method: Method,
        path: String,
        arguments: [String: (any QueryArgumentConvertible)?],
        content: Content
    ) async throws -> DecodedResponse<T> {
        try await send(method, path: path, arguments: arguments, content: content, decodesItself: true) { data, _ in
            try ServiceJSON.decode(T.self, from: data)
        }
    }

    private func send<T>(
        _ method: Method,
        path: String,
        arguments: [String: (any QueryArgumentConvertible)?],
        content: Content,
        decodesItself: Bool = false,
        handler: @escaping ResponseHandler<T>
    ) async throws -> DecodedResponse<T> {
        var header = HttpHeader()
        if let type = content.type { header[.contentType] = type }
        let invocation = Invocation(
            method: method,
            target: Result { () throws(WebServiceError) in try ProxyTarget.text(base: baseURL, path: path) },
            arguments: arguments,
            sharedFields: headers,
            header: header,
            body: content.body,
            options: options,
            timeout: timeout,
            contentLimit: contentLimit,
            handler: handler,
            decodesItself: decodesItself
        )
        return try await client.response(to: invocation)
    }
}

/// What a call sends.
private struct Content {
    let body: HttpBody
    /// The type that the caller gave.
    var type: String?

    /// Bytes with their type; a type without bytes is not sent.
    static func data(_ data: Data?, type: String?) -> Content {
        data.map { Content(body: .data($0), type: type) } ?? Content(body: .empty)
    }

    /// A value as JSON, encoded at once, so that it need not be sendable.
    static func json<B: Encodable>(_ value: B) -> Content {
        let encoded = Result { try ServiceJSON.encoder().encode(value) }
        let body = HttpBody { .init(contentType: "application/json", content: .data(try encoded.get())) }
        return Content(body: body)
    }
}
