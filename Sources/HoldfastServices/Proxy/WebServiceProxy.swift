// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation
public import Holdfast
internal import HoldfastSemantics

#if canImport(FoundationNetworking)
    public import FoundationNetworking
#endif

/// Calls a web service by method, path and arguments, and decodes its answers.
///
/// ```swift
/// let proxy = WebServiceProxy(session: .shared, baseURL: url, cache: .default, retrierFactory: .default)
/// let numbers: [Int] = try await proxy.invoke(.get, path: "test/fibonacci", arguments: ["count": 8])
/// ```
///
/// Make it once and keep it: cache and budgets of retrying live as long as it does. A value: copies, also those with other
/// ``headers``, share transport, cache, hooks and retrier factory, and may be used from any number of tasks.
public struct WebServiceProxy: Sendable {
    /// The method of a request: `.get`, `.post`, `.put`, `.delete`, `.patch`, `.head` or any other token.
    public typealias Method = HttpMethod

    /// The value of an argument that is left out.
    public static let undefined = QueryArgument.undefined

    /// The URL that all paths are below.
    public let baseURL: URL

    /// Fields that each request bears; none by default.
    ///
    /// They count as credentials: but for those that are known to hold none, such as User-Agent, they name whose responses a cache
    /// keeps, and stay behind when a redirect leaves the origin.
    public var headers = HttpHeader()

    /// What else is asked for each call: cache directive, principal, tags, rules of retrying. All defaults by default.
    public var options = CallOptions()

    /// The time one call may take, retries and content included; nil, the default: the configuration's limits alone.
    public var timeout: Duration?

    /// The most bytes of content that are taken in; a longer response fails with `.bodyTooLarge`. 64 MiB by default.
    public var contentLimit = 64 << 20

    let client: ServiceClient<ProxyService>

    /// A proxy of the service at `baseURL` that sends through `transport`.
    ///
    /// - Parameters:
    ///   - transport: what sends; by default a URLSession of its own, without cookies, credentials or a cache on disk.
    ///   - baseURL: an http or https URL. A query it has is sent with every call.
    ///   - cache: stores and answers by RFC 9111; nil, the default: no cache.
    ///   - retrierFactory: makes the retrier of each call that fails; by default each request is sent once.
    ///   - hooks: take part in each call on requests and responses, in this order.
    ///   - requestHooks: take part in each call on decoded results, above `hooks`, in this order.
    ///   - configuration: clock, time limits, redirects, credentials that can be renewed, observers.
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

    /// A proxy of the service at `baseURL` that sends through somebody's session, used as it is.
    ///
    /// The session is neither copied nor invalidated, and its cache, if it has one, stays in force beneath; see
    /// `URLSessionTransport(session:)`. The other parameters are those of ``init(transport:baseURL:cache:retrierFactory:hooks:requestHooks:configuration:)``.
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

    /// The pipeline beneath all calls; for requests of another kind, `drain()`, or its cache.
    public var pipeline: Pipeline { client.pipeline }

    /// The same proxy whose requests bear these fields as well; where both have a field, letter case aside, these win.
    public func with(headers: HttpHeader) -> WebServiceProxy {
        var proxy = self
        proxy.headers = self.headers + headers
        return proxy
    }
}
