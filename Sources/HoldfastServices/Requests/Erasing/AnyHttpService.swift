// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Holdfast

#if canImport(FoundationNetworking)
    internal import Foundation
    public import FoundationNetworking
#else
    public import Foundation
#endif

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
