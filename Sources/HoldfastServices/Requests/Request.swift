// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation
public import Holdfast
public import HoldfastSemantics
internal import HoldfastStorage

#if canImport(FoundationNetworking)
    public import FoundationNetworking
#endif

/// One kind of request to an API, with what it is answered by; everything has a default where ``Result`` is `Void`, `Data` or
/// `String`, and in a ``JsonRequest``.
///
/// Send it by ``schedule(with:)``. The request is built in this order: URL, scheme, method, route, query, header (the service's,
/// its asynchronous one, its credential, the request's own; each wins over those before), body, and ``prepare(_:)`` at the
/// end. It is built before anything is scheduled; where that fails nothing is sent.
public protocol Request: Sendable {
    /// What a response is decoded to.
    associatedtype Result: Sendable

    /// Takes the place of the service's ``HttpService/apiUrl``; nil by default. The service's headers and credential go there too,
    /// so another host needs ``authorizationRequirement`` `.none` unless it may see them.
    var url: (any UrlConvertible)? { get }
    /// Takes the place of the service's ``HttpService/usesSecureProtocol``; nil by default.
    var usesSecureProtocol: Bool? { get }
    /// GET by default.
    var method: HttpMethod { get }
    /// The path below the service's URL; empty by default.
    var routes: HttpRoute { get throws }
    /// The query arguments; none by default.
    var query: HttpQuery { get throws }
    /// Fields of this request; none by default.
    ///
    /// One counts as a credential where its name says so, as X-Api-Key does, or where ``options`` name it in `credentialFields`.
    var header: HttpHeader { get throws }
    /// The content; empty by default. Its content type is set where no header names one.
    var body: HttpBody { get throws }
    /// Whether the service's credential is wanted; `.optional` by default.
    var authorizationRequirement: AuthorizationRequirement { get }
    /// The statuses that are a success; 200 to 299 by default.
    var acceptedStatusCodes: ClosedRange<Int> { get }
    /// How urgent it is; `.userInitiated` by default.
    var priority: RequestPriority { get }
    /// The time the whole call may take, from the moment it is made until its content is there: building the request, waits
    /// and retries included; nil, the default: the pipeline's limits alone.
    ///
    /// It interrupts no hook: that is over before the time is looked at again.
    var timeout: Duration? { get }
    /// What else is asked for each call: cache directive, principal, tags, rules of retrying. All defaults by default.
    var options: CallOptions { get }
    /// The most bytes of content that are taken in; 64 MiB by default.
    var contentLimit: Int { get }

    /// The last word on what is sent: edits the request as it was built. The content of ``body`` travels beside it; an `httpBody`
    /// or `httpBodyStream` that is set here takes its place.
    ///
    /// Called when a call is made, and again before each retry of it: what differs in the header fields, in the query and in the user
    /// of the URL is sent. A field that it adds or changes counts as a credential, as those of the service do.
    func prepare(_ request: URLRequest) async throws -> URLRequest

    /// Takes a response in: by default reads its content and hands both to ``accept(_:content:)``.
    ///
    /// Runs within the call, beneath the hooks that see one outcome. Leave a body in the response that can still be read.
    func receive(_ response: inout Response) async throws -> Result

    /// Judges a response and makes the result: by default checks the status and decodes. Throws to refuse it.
    ///
    /// May be called more than once for one call, and on content from a cache.
    func accept(_ response: Response, content: Data) throws -> Result

    /// Makes the result of the content of an accepted response.
    func decode(_ data: Data) throws -> Result

    /// What becomes of a call whose response was refused: by default it fails with `error`.
    func handle(_ error: any Error, response: Response) -> ErrorHandling
}

/// What becomes of a call whose response was refused; closed.
public enum ErrorHandling: Sendable {
    /// The call fails with this error.
    case error(any Error)
    /// The same request, content included, is sent to another URL; credentials stay behind where that is another origin. A call
    /// is sent on 16 times at most.
    case redirect(to: URL)
}

/// How urgent a request is; closed.
public enum RequestPriority: Sendable, Hashable {
    /// Nobody waits for it.
    case utility
    /// Neither of the others.
    case `default`
    /// Somebody looks on.
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
        let bytes = try await response.takeContent(upTo: contentLimit, isRefused: isRefused)
        return try accept(response, content: bytes.withUnsafeBytes { Data($0) })
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

    /// Sends the request and returns what its response is decoded to.
    ///
    /// - Throws: what the service's ``HttpService/mapError(_:)`` makes of what happened; by default `ServiceError` or
    ///   `CancellationError`.
    public func schedule<Service>(
        with client: ServiceClient<Service>
    ) async throws(Service.RequestError) -> Result {
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
    public func decode(_ data: Data) throws -> String {
        guard let text = String(data: data, encoding: .utf8) else {
            throw ServiceError(.decodingFailed, "The content is not UTF-8; decode it as Data.")
        }
        return text
    }
}
