// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation
public import Holdfast
internal import HoldfastSemantics

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
    /// The session is neither copied nor invalidated, and its cache, if it has one, stays active below this one; see
    /// `URLSessionTransport(session:)`. The other parameters are those of
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
