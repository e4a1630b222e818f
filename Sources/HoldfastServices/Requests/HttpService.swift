// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Holdfast

#if canImport(FoundationNetworking)
    internal import Foundation
    public import FoundationNetworking
#else
    public import Foundation
#endif

/// An API: where it is, what its requests have in common, and how calls are treated.
///
/// A service represents one API in one environment; the same requests run against a staging and a production service. Only
/// ``apiUrl`` has no default. A service is only a description: pass it to a ``ServiceClient``, which reads it once to make a
/// pipeline, and sends the requests.
public protocol HttpService: Sendable {
    /// The type of errors that calls throw; the original error, unless ``mapError(_:)`` changes it.
    associatedtype RequestError: Error = any Error

    /// Where the API is, such as `api.example.com/v2` or `http://localhost:8080`. Without a scheme, ``usesSecureProtocol``
    /// decides.
    var apiUrl: any UrlConvertible { get }

    /// Whether requests use https (wss) rather than http (ws) if ``apiUrl`` has no scheme; true by default. A request may
    /// override it.
    var usesSecureProtocol: Bool { get }

    /// Fields of every request; a request's own fields override them, ignoring the case of names. None by default.
    ///
    /// They count as credentials, except for those that are known to hold none, such as User-Agent: they determine the cache's
    /// partition, and are dropped when a redirect leaves the origin.
    var header: HttpHeader { get }

    /// Fields that are found asynchronously, such as a token; they override ``header``, and the request's own override them.
    /// None by default.
    ///
    /// Read when a call is made, and again before each retry. They count as credentials, like those of ``header``.
    var asyncHeader: HttpHeader { get async throws }

    /// The credential of requests that need one, by their ``AuthorizationRequirement``; it overrides both headers, and the
    /// request's own overrides it. None by default. Read like ``asyncHeader``.
    var authorization: Authorization { get async throws }

    /// The configuration of the default ``transport``; `URLSessionConfiguration.default`, whose cache is not used.
    var sessionConfiguration: URLSessionConfiguration { get }

    /// Sends the requests; the service's own URLSession by default.
    var transport: any Transport { get }

    /// Opens streams; URLSession's WebSocket tasks by default.
    var streamTransport: any StreamTransport { get }

    /// Stores and reuses responses by RFC 9111; nil, the default: no cache.
    var cache: HTTPCache? { get }

    /// Makes the retriers of calls that fail; by default, each request is sent once.
    var retrierFactory: any RetrierFactory { get }

    /// Hooks for the requests and responses of each call, in this order; none by default.
    var hooks: [any ServiceHook] { get }

    /// Hooks for the decoded results of each call, above ``hooks``, in this order; none by default.
    var requestHooks: [any RequestHook] { get }

    /// Clock, time limits, redirects, observers; the defaults of `PipelineConfiguration`.
    var pipelineConfiguration: PipelineConfiguration { get }

    /// Called for each call that failed, after all hooks and before the caller, for notifications; does nothing by default.
    func process(_ error: any Error)

    /// Makes the error that the call throws from the original one, including cancellation; hooks and ``process(_:)`` get the
    /// original.
    func mapError(_ error: any Error) -> RequestError
}

extension HttpService {
    public var usesSecureProtocol: Bool { true }
    public var header: HttpHeader { HttpHeader() }
    public var asyncHeader: HttpHeader { get async throws { HttpHeader() } }
    public var authorization: Authorization { get async throws { .none } }
    public var sessionConfiguration: URLSessionConfiguration { .default }
    public var transport: any Transport { URLSessionTransport(configuration: sessionConfiguration) }
    public var cache: HTTPCache? { nil }
    public var retrierFactory: any RetrierFactory { .never }
    public var hooks: [any ServiceHook] { [] }
    public var requestHooks: [any RequestHook] { [] }
    public var pipelineConfiguration: PipelineConfiguration { PipelineConfiguration() }
    public func process(_ error: any Error) {}
}

extension HttpService where RequestError == any Error {
    public func mapError(_ error: any Error) -> any Error { error }
}

/// A service made from values instead of its own type, for tools, tests and APIs that are known only at run time.
///
/// Members can be set until the service is passed to a ``ServiceClient``, which keeps what it read.
public struct AnyHttpService: HttpService {
    public var apiUrl: any UrlConvertible
    public var usesSecureProtocol = true
    public var header: HttpHeader
    public var sessionConfiguration: URLSessionConfiguration
    public var cache: HTTPCache?
    public var retrierFactory: any RetrierFactory
    public var hooks: [any ServiceHook]
    public var requestHooks: [any RequestHook]
    public var pipelineConfiguration = PipelineConfiguration()
    /// Sends the requests; nil, the default: a URLSession with ``sessionConfiguration``.
    public var ownTransport: (any Transport)?
    /// Opens streams; nil, the default: a URLSession with ``sessionConfiguration``.
    public var ownStreamTransport: (any StreamTransport)?
    /// Makes the ``asyncHeader``; nothing by default.
    public var makeHeader: @Sendable () async throws -> HttpHeader = { HttpHeader() }
    /// Finds the ``authorization``; none by default.
    public var findAuthorization: @Sendable () async throws -> Authorization = { .none }
    /// Called for each call that failed; does nothing by default.
    public var processError: @Sendable (any Error) -> Void

    /// A service.
    ///
    /// - Parameters:
    ///   - apiUrl: where the API is, without a scheme.
    ///   - header: the fields of every request.
    ///   - sessionConfiguration: the configuration of the URLSession that sends.
    ///   - cache: stores and reuses responses by RFC 9111; nil, the default: no cache.
    ///   - retrierFactory: makes the retriers of calls that fail; none by default.
    ///   - hooks: are called for the requests and responses of each call.
    ///   - requestHooks: are called for the decoded results of each call.
    ///   - process: is called once for each call that failed.
    public init(
        at apiUrl: any UrlConvertible,
        header: HttpHeader = HttpHeader(),
        sessionConfiguration: URLSessionConfiguration = .default,
        cache: HTTPCache? = nil,
        retrierFactory: any RetrierFactory = .never,
        hooks: [any ServiceHook] = [],
        requestHooks: [any RequestHook] = [],
        process: @escaping @Sendable (any Error) -> Void = { _ in }
    ) {
        self.apiUrl = apiUrl
        self.header = header
        self.sessionConfiguration = sessionConfiguration
        self.cache = cache
        self.retrierFactory = retrierFactory
        self.hooks = hooks
        self.requestHooks = requestHooks
        processError = process
    }

    public var transport: any Transport {
        get { ownTransport ?? URLSessionTransport(configuration: sessionConfiguration) }
        set { ownTransport = newValue }
    }

    public var streamTransport: any StreamTransport {
        get { ownStreamTransport ?? URLSessionStreamTransport(configuration: sessionConfiguration) }
        set { ownStreamTransport = newValue }
    }

    public var asyncHeader: HttpHeader { get async throws { try await makeHeader() } }

    public var authorization: Authorization { get async throws { try await findAuthorization() } }

    public func process(_ error: any Error) { processError(error) }
}
