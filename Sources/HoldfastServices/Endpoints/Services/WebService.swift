// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation
public import Holdfast

#if canImport(FoundationNetworking)
    public import FoundationNetworking
#endif

/// An API whose calls are declared as endpoints: where it is, what all its responses have in common, and how they are judged.
///
/// Beside ``baseURL`` only ``shared`` has no default. Everything of ``HttpService`` holds here too: cache, retriers, hooks,
/// headers and credential.
///
/// A response goes through these stages, and the first that throws ends the call: the status is 200 to 299; `validate` of the
/// service and of the endpoint on the response; its content decodes as ``BasicResponse``; `validate` of the service and of the
/// endpoint on that; its content decodes as the endpoint's output. The content of a refused response is then read as
/// ``ErrorResponse``, and at last ``handle(_:response:for:)`` is asked what becomes of the call.
public protocol WebService: HttpService {
    /// What all responses have in common, such as a flag for success; `NoBasicResponse`, the default, leaves the stage out.
    associatedtype BasicResponse: Decodable & Sendable = NoBasicResponse
    /// What responses to failed calls have in common; `NoErrorResponse`, the default, leaves the stage out.
    associatedtype ErrorResponse: AnyErrorResponse = NoErrorResponse

    /// The client by which endpoints are called that are not given another one: one for the life of the process, so store it
    /// in a `static let`.
    ///
    /// Tests put another in its place by ``withShared(_:isolation:_:)``.
    static var shared: ServiceClient<Self> { get }

    /// Where the API is; the paths of endpoints are appended to it. Its scheme is kept: http stays http.
    var baseURL: URL { get }

    /// Edits the request of an endpoint as the last but the endpoint itself. Does nothing by default.
    func configure(_ request: inout URLRequest, for endpoint: some Endpoint) async throws
    /// Sets up what encodes JSON input, before the endpoint does. Does nothing by default.
    func configure(_ encoder: inout JSONEncoder, for endpoint: some Endpoint) throws
    /// Sets up what decodes JSON, before the endpoint does. Does nothing by default.
    func configure(_ decoder: inout JSONDecoder, for endpoint: some Endpoint) throws
    /// Sets up what encodes input as a query or a form, before the endpoint does. Does nothing by default.
    func configure(_ encoder: inout KeyValueEncoder, for endpoint: some Endpoint) throws

    /// Judges a response with an accepted status, content included, before the endpoint does. Takes all by default.
    func validate(_ response: Response, for endpoint: some Endpoint) throws
    /// Judges what a response has in common with all others, before the endpoint does. Takes all by default.
    func validate(_ basicResponse: BasicResponse, for endpoint: some Endpoint) throws

    /// What becomes of a call whose response was refused, where the endpoint left the error as an ``EndpointError``; by default
    /// the call fails with it.
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
    /// Whether requests to it go by TLS; so they do unless it says http.
    var isSecure: Bool { scheme?.lowercased() != "http" }
}
