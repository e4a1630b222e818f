// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Holdfast
public import HoldfastSemantics

#if canImport(FoundationNetworking)
    internal import Foundation
    public import FoundationNetworking
#else
    public import Foundation
#endif

/// An API: where it is, what each request to it carries, and how calls are treated.
///
/// One service stands for one API in one environment; the same requests run against a staging and a production service. Only
/// ``apiUrl`` has no default. A service is a description: hand it to a ``ServiceClient``, which reads what it needs for a
/// pipeline once and sends.
public protocol HttpService: Sendable {
    /// What callers are thrown; whatever happened, as it is, unless ``mapError(_:)`` makes something of it.
    associatedtype RequestError: Error = any Error

    /// Where the API is, such as `api.example.com/v2`. A scheme is not needed and gives way to ``usesSecureProtocol``.
    var apiUrl: any UrlConvertible { get }

    /// Whether requests go by https (wss) rather than http (ws); true by default. A request may say otherwise.
    var usesSecureProtocol: Bool { get }

    /// Fields that each request bears; a request's own fields win over them, letter case of names aside. None by default.
    ///
    /// They count as credentials: but for those that are known to hold none, such as User-Agent, they name whose responses a
    /// cache keeps, and stay behind when a redirect leaves the origin.
    var header: HttpHeader { get }

    /// Fields that take time to find, such as a token; they win over ``header`` and lose to the request's own. None by default.
    ///
    /// Asked when a call is made, and again before each retry of it. They count as credentials, as those of ``header`` do.
    var asyncHeader: HttpHeader { get async throws }

    /// The credential of requests that want one, by their ``AuthorizationRequirement``; it wins over both headers and loses to
    /// the request's own. None by default. Asked like ``asyncHeader``.
    var authorization: Authorization { get async throws }

    /// How the default ``transport`` is set up; `URLSessionConfiguration.default`, whose cache is not used.
    var sessionConfiguration: URLSessionConfiguration { get }

    /// What sends; a URLSession of the service's own by default.
    var transport: any Transport { get }

    /// What opens streams; URLSession's WebSocket tasks by default.
    var streamTransport: any StreamTransport { get }

    /// What stores and answers by RFC 9111; nil, the default: nothing.
    var cache: HTTPCache? { get }

    /// Makes the retriers of calls that fail; by default there are none and each request is sent once.
    var retrierFactory: any RetrierFactory { get }

    /// What takes part in each call on requests and responses, in this order; none by default.
    var hooks: [any ServiceHook] { get }

    /// What takes part in each call on decoded results, above ``hooks``, in this order; none by default.
    var requestHooks: [any RequestHook] { get }

    /// Clock, time limits, redirects, observers; the defaults of `PipelineConfiguration`.
    var pipelineConfiguration: PipelineConfiguration { get }

    /// Is told of each call that failed, after all hooks and before the caller; for notifications. Does nothing by default.
    func process(_ error: any Error)

    /// Makes what the caller is thrown of what happened, cancellation included; hooks and ``process(_:)`` see what happened.
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
