// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation
public import Holdfast

#if canImport(FoundationNetworking)
    public import FoundationNetworking
#endif

/// An API whose calls are declared as endpoints: its URL, what all its responses have in common, and how they are checked.
///
/// Everything except ``baseURL`` and ``shared`` has a default. All members of ``HttpService`` apply here too: cache, retriers,
/// hooks, headers and credential.
///
/// A response goes through these stages, and the first that throws ends the call: the status is 200 to 299; `validate` of the
/// service and of the endpoint on the response; its content decodes as ``BasicResponse``; `validate` of the service and of the
/// endpoint on that; its content decodes as the endpoint's output. The content of a refused response is then decoded as
/// ``ErrorResponse``, and finally ``handle(_:response:for:)`` decides what happens to the call.
public protocol WebService: HttpService {
    /// What all responses have in common, such as a success flag; `NoBasicResponse`, the default, skips this stage.
    associatedtype BasicResponse: Decodable & Sendable = NoBasicResponse
    /// What responses to failed calls have in common; `NoErrorResponse`, the default, skips this stage.
    associatedtype ErrorResponse: AnyErrorResponse = NoErrorResponse

    /// The client for endpoint calls that are not given another one. It is used for the life of the process, so store it in a
    /// `static let`.
    ///
    /// Tests replace it with ``withShared(_:isolation:operation:)``.
    static var shared: ServiceClient<Self> { get }

    /// The URL of the API, to which the paths of endpoints are appended. Its scheme is kept: http stays http.
    var baseURL: URL { get }

    /// Changes the request of an endpoint, last except for the endpoint itself. Does nothing by default.
    func configure(_ request: inout URLRequest, for endpoint: some Endpoint) async throws
    /// Sets up the encoder of JSON input, before the endpoint does. Does nothing by default.
    func configure(_ encoder: inout JSONEncoder, for endpoint: some Endpoint) throws
    /// Sets up the JSON decoder, before the endpoint does. Does nothing by default.
    func configure(_ decoder: inout JSONDecoder, for endpoint: some Endpoint) throws
    /// Sets up the encoder of queries and forms, before the endpoint does. Does nothing by default.
    func configure(_ encoder: inout KeyValueEncoder, for endpoint: some Endpoint) throws

    /// Checks a response with an accepted status, content included, before the endpoint does. Accepts everything by default.
    func validate(_ response: Response, for endpoint: some Endpoint) throws
    /// Checks what all responses have in common, before the endpoint does. Accepts everything by default.
    func validate(_ basicResponse: BasicResponse, for endpoint: some Endpoint) throws

    /// Decides what happens to a call whose response was refused, if the endpoint left the error as an ``EndpointError``; by
    /// default the call fails with it.
    func handle(_ error: EndpointError, response: Response, for endpoint: some Endpoint) -> ErrorHandling
}

extension WebService {
    public var apiUrl: any UrlConvertible { baseURL }
    public var usesSecureProtocol: Bool { baseURL.isSecure }
    public func configure(_ request: inout URLRequest, for endpoint: some Endpoint) async throws {}
    public func configure(_ encoder: inout JSONEncoder, for endpoint: some Endpoint) throws {}
    public func configure(_ decoder: inout JSONDecoder, for endpoint: some Endpoint) throws {}
    public func configure(_ encoder: inout KeyValueEncoder, for endpoint: some Endpoint) throws {}
    public func validate(_ response: Response, for endpoint: some Endpoint) throws {}
    public func validate(_ basicResponse: BasicResponse, for endpoint: some Endpoint) throws {}
    public func handle(_ error: EndpointError, response: Response, for endpoint: some Endpoint) -> ErrorHandling {
        .error(error)
    }
}

extension URL {
    /// Whether requests to it use TLS: yes, unless the scheme is http.
    var isSecure: Bool { scheme?.lowercased() != "http" }
}

/// The type that the content of a failed call's response is decoded to.
public protocol AnyErrorResponse: Decodable, Sendable {
    /// The server's message for people.
    var message: String { get }
    /// Whether the message is for developers rather than for users; false by default.
    var isInternal: Bool { get }
}

extension AnyErrorResponse {
    public var isInternal: Bool { false }
}

/// Declares that responses to a service's failed calls have nothing in common; their content is not decoded.
public struct NoErrorResponse: AnyErrorResponse {
    public var message: String { "" }
}

/// Declares that a service's responses have nothing in common; their content is decoded once, as the endpoint's output.
public struct NoBasicResponse: Decodable, Sendable {}

extension WebService {
    /// The client for endpoint calls that are not given one: that of the innermost ``withShared(_:isolation:operation:)``, or else
    /// ``shared``.
    public static var current: ServiceClient<Self> {
        SharedClients.overrides[ObjectIdentifier(Self.self)] as? ServiceClient<Self> ?? shared
    }

    /// Runs `operation` with another client in place of ``shared``, only for this service and only for the tasks of
    /// `operation`; tests that run in parallel do not affect each other.
    public static func withShared<Value>(
        _ client: ServiceClient<Self>,
        isolation: isolated (any Actor)? = #isolation,
        operation: () async throws -> Value
    ) async rethrows -> Value {
        var overrides = SharedClients.overrides
        overrides[ObjectIdentifier(Self.self)] = client
        return try await SharedClients.$overrides.withValue(overrides, operation: operation, isolation: isolation)
    }
}

/// The clients that replace shared ones, by the type of their service.
private enum SharedClients {
    @TaskLocal static var overrides: [ObjectIdentifier: any Sendable] = [:]
}
