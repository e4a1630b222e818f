// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation
public import Holdfast
public import HoldfastSemantics

#if canImport(FoundationNetworking)
    public import FoundationNetworking
#endif

/// One call of an API, declared as a type; adopt one, and only one, of ``EmptyEndpoint``, ``InEndpoint``, ``OutEndpoint`` and
/// ``InOutEndpoint``.
///
/// A type that adopts two of them does not compile, since each says something else of ``EndpointKind``.
public protocol Endpoint: Sendable {
    /// The API it belongs to.
    associatedtype Service: WebService
    /// Which of the four kinds it is; set by the kind's protocol, never by hand.
    associatedtype EndpointKind
    /// The methods of HTTP, for `static let method = Method.post`.
    typealias Method = RequestMethod

    /// GET by default.
    static var method: Method { get }
    /// How responses are read, basic and error responses included; JSON by default.
    static var outputFormat: OutputFormat { get }
    /// Whether the service's credential is wanted; `.optional` by default.
    static var authorizationRequirement: AuthorizationRequirement { get }
    /// What the call does, for people, as in "Logging in failed"; the type's name by default.
    static var operationName: String { get }

    /// What is appended to the base URL: text, divided at slashes, in which `?`, `#`, `%` and the like are percent-encoded. It
    /// may use the endpoint's own values; segments `.` and `..` are refused, so that no value leads elsewhere.
    var path: String { get }
    /// Takes the place of the service's base URL, scheme included; nil by default.
    var baseURLOverride: URL? { get }
    /// What else is asked for the call: cache directive, principal, tags, rules of retrying. All defaults by default.
    var options: CallOptions { get }
    /// The time the whole call may take, its content included; nil, the default: the pipeline's limits alone.
    var timeout: Duration? { get }
    /// The most bytes of content that are taken in, but for a download; 64 MiB by default.
    var contentLimit: Int { get }

    /// The last word on the request, its Authorization included. Does nothing by default.
    ///
    /// Called when a call is made, and again before each retry of it: what differs in the header fields is sent.
    func configure(_ request: inout URLRequest) async throws
    /// Sets up what encodes JSON input, after the service did. Does nothing by default.
    func configure(_ encoder: inout JSONEncoder) throws
    /// Sets up what decodes JSON, after the service did. Does nothing by default.
    func configure(_ decoder: inout JSONDecoder) throws
    /// Sets up what encodes input as a query or a form, after the service did. Does nothing by default.
    func configure(_ encoder: inout KeyValueEncoder) throws

    /// Judges a response with an accepted status, content included, after the service did. Takes all by default.
    func validate(_ response: Response) throws
    /// Judges what a response has in common with all others, after the service did. Takes all by default.
    func validate(_ basicResponse: Service.BasicResponse) throws

    /// What becomes of a call whose response was refused: by default it fails with `error`, unless the service has another
    /// answer, which is asked wherever this returns an ``EndpointError``.
    func handle(_ error: EndpointError, response: Response) -> ErrorHandling
}

extension Endpoint {
    public static var method: Method { .get }
    public static var outputFormat: OutputFormat { .JSON }
    public static var authorizationRequirement: AuthorizationRequirement { .optional }
    public static var operationName: String { "\(Self.self)" }
    public var baseURLOverride: URL? { nil }
    public var options: CallOptions { CallOptions() }
    public var timeout: Duration? { nil }
    public var contentLimit: Int { 64 << 20 }
    public func configure(_ request: inout URLRequest) async throws {}
    public func configure(_ encoder: inout JSONEncoder) throws {}
    public func configure(_ decoder: inout JSONDecoder) throws {}
    public func configure(_ encoder: inout KeyValueEncoder) throws {}
    public func validate(_ response: Response) throws {}
    public func validate(_ basicResponse: Service.BasicResponse) throws {}
    public func handle(_ error: EndpointError, response: Response) -> ErrorHandling { .error(error) }
}

/// The four kinds of endpoints, as marks for ``Endpoint/EndpointKind``.
public enum EndpointKinds {
    /// Neither input nor output.
    public enum Empty {}
    /// Input alone.
    public enum In {}
    /// Output alone.
    public enum Out {}
    /// Input and output.
    public enum InOut {}
}
