// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation
public import Holdfast

#if canImport(FoundationNetworking)
    public import FoundationNetworking
#endif

/// One call of an API, declared as a type; conform to exactly one of ``EmptyEndpoint``, ``InEndpoint``, ``OutEndpoint`` and
/// ``InOutEndpoint``.
///
/// A type that conforms to two of them does not compile, because each sets a different ``EndpointKind``.
public protocol Endpoint: Sendable {
    /// The API it belongs to.
    associatedtype Service: WebService
    /// Which of the four kinds it is; set by the kind's protocol, never by you.
    associatedtype EndpointKind
    /// The HTTP methods, for `static let method = Method.post`.
    typealias Method = RequestMethod

    /// GET by default.
    static var method: Method { get }
    /// How responses are decoded, including basic and error responses; JSON by default.
    static var outputFormat: OutputFormat { get }
    /// Whether the call needs the service's credential; `.optional` by default.
    static var authorizationRequirement: AuthorizationRequirement { get }
    /// What the call does, in words for people, as in "Logging in failed"; the type's name by default.
    static var operationName: String { get }

    /// What to append to the base URL: text, divided at slashes, in which `?`, `#`, `%` and similar are percent-encoded. It may
    /// use the endpoint's own values; segments `.` and `..` are rejected, so that no value can lead elsewhere.
    var path: String { get }
    /// Replaces the service's base URL, scheme included; nil by default.
    var baseURLOverride: URL? { get }
    /// Other options of the call: cache directive, principal, tags, retry rules. Empty by default.
    var options: CallOptions { get }
    /// How long the whole call may take, its content included; nil, the default: only the pipeline's limits apply.
    var timeout: Duration? { get }
    /// The most bytes of content to read, except in a download; 64 MiB by default.
    var contentLimit: Int { get }

    /// Makes the last changes to the request, its Authorization included. Does nothing by default.
    ///
    /// Called for each call, and again before each retry; header fields that differ are sent.
    func configure(_ request: inout URLRequest) async throws
    /// Sets up the encoder of JSON input, after the service did. Does nothing by default.
    func configure(_ encoder: inout JSONEncoder) throws
    /// Sets up the JSON decoder, after the service did. Does nothing by default.
    func configure(_ decoder: inout JSONDecoder) throws
    /// Sets up the encoder of queries and forms, after the service did. Does nothing by default.
    func configure(_ encoder: inout KeyValueEncoder) throws

    /// Checks a response with an accepted status, content included, after the service did. Accepts everything by default.
    func validate(_ response: Response) throws
    /// Checks what all responses have in common, after the service did. Accepts everything by default.
    func validate(_ basicResponse: Service.BasicResponse) throws

    /// Decides what happens to a call whose response was refused. By default it fails with `error`, unless the service decides
    /// otherwise; the service is asked whenever this returns an ``EndpointError``.
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

/// The four kinds of endpoints, as marker types for ``Endpoint/EndpointKind``.
public enum EndpointKinds {
    /// Neither input nor output.
    public enum Empty {}
    /// Input only.
    public enum In {}
    /// Output only.
    public enum Out {}
    /// Input and output.
    public enum InOut {}
}

/// An endpoint with neither input nor output: only the checks of its response decide whether it succeeds.
public protocol EmptyEndpoint: Endpoint where EndpointKind == EndpointKinds.Empty {}

extension EmptyEndpoint {
    /// Calls the endpoint.
    ///
    /// - Parameters:
    ///   - client: sends the call; the service's shared client by default.
    ///   - onProgress: is called with the received share of the response, from 0 to 1.
    /// - Throws: ``EndpointError`` or `CancellationError`, unless the service's `mapError` returns something else.
    public func makeRequest(
        to client: ServiceClient<Service>? = nil,
        onProgress: EndpointProgress? = nil
    ) async throws(Service.RequestError) {
        _ = try await response(to: client, onProgress: onProgress)
    }

    /// Calls the endpoint and returns the response too; otherwise like ``makeRequest(to:onProgress:)``.
    public func response(
        to client: ServiceClient<Service>? = nil,
        onProgress: EndpointProgress? = nil
    ) async throws(Service.RequestError) -> DecodedResponse<Void> {
        try await send(to: client, output: .nothing, onProgress: onProgress)
    }
}

/// An endpoint with input only.
public protocol InEndpoint: Endpoint where EndpointKind == EndpointKinds.In {
    /// The values to send, with names. A single number, boolean or date needs JSON; `Data` and `String` are sent unchanged,
    /// whatever the format.
    associatedtype Input: Encodable & Sendable
    /// How input is encoded; JSON by default.
    static var inputFormat: InputFormat { get }
}

extension InEndpoint {
    public static var inputFormat: InputFormat { .JSON }

    /// Calls the endpoint.
    ///
    /// - Parameters:
    ///   - client: sends the call; the service's shared client by default.
    ///   - input: the values to send; encoded once, before anything else.
    ///   - onProgress: is called with the received share of the response, from 0 to 1.
    /// - Throws: ``EndpointError`` or `CancellationError`, unless the service's `mapError` returns something else.
    public func makeRequest(
        to client: ServiceClient<Service>? = nil,
        with input: Input,
        onProgress: EndpointProgress? = nil
    ) async throws(Service.RequestError) {
        _ = try await response(to: client, with: input, onProgress: onProgress)
    }

    /// Calls the endpoint and returns the response too; otherwise like ``makeRequest(to:with:onProgress:)``.
    public func response(
        to client: ServiceClient<Service>? = nil,
        with input: Input,
        onProgress: EndpointProgress? = nil
    ) async throws(Service.RequestError) -> DecodedResponse<Void> {
        let input = EndpointInput.values(input, as: Self.inputFormat)
        return try await send(to: client, input: input, output: .nothing, onProgress: onProgress)
    }
}

/// An endpoint with output only.
public protocol OutEndpoint: Endpoint where EndpointKind == EndpointKinds.Out {
    /// What a response is decoded to. A single number, boolean or date needs JSON; `Data` and `String` are the unchanged
    /// content, whatever the format.
    associatedtype Output: Decodable & Sendable
}

extension OutEndpoint {
    /// Calls the endpoint.
    ///
    /// - Parameters:
    ///   - client: sends the call; the service's shared client by default.
    ///   - onProgress: is called with the received share of the response, from 0 to 1.
    /// - Throws: ``EndpointError`` or `CancellationError`, unless the service's `mapError` returns something else.
    public func makeRequest(
        to client: ServiceClient<Service>? = nil,
        onProgress: EndpointProgress? = nil
    ) async throws(Service.RequestError) -> Output {
        try await response(to: client, onProgress: onProgress).value
    }

    /// Calls the endpoint and returns the response too; otherwise like ``makeRequest(to:onProgress:)``.
    public func response(
        to client: ServiceClient<Service>? = nil,
        onProgress: EndpointProgress? = nil
    ) async throws(Service.RequestError) -> DecodedResponse<Output> {
        try await send(to: client, output: .values(), onProgress: onProgress)
    }
}

/// An endpoint with input and output.
public protocol InOutEndpoint: Endpoint where EndpointKind == EndpointKinds.InOut {
    /// The values to send, with names. A single number, boolean or date needs JSON; `Data` and `String` are sent unchanged,
    /// whatever the format.
    associatedtype Input: Encodable & Sendable
    /// What a response is decoded to. A single number, boolean or date needs JSON; `Data` and `String` are the unchanged
    /// content, whatever the format.
    associatedtype Output: Decodable & Sendable
    /// How input is encoded; JSON by default.
    static var inputFormat: InputFormat { get }
}

extension InOutEndpoint {
    public static var inputFormat: InputFormat { .JSON }

    /// Calls the endpoint.
    ///
    /// - Parameters:
    ///   - client: sends the call; the service's shared client by default.
    ///   - input: the values to send; encoded once, before anything else.
    ///   - onProgress: is called with the received share of the response, from 0 to 1.
    /// - Throws: ``EndpointError`` or `CancellationError`, unless the service's `mapError` returns something else.
    public func makeRequest(
        to client: ServiceClient<Service>? = nil,
        with input: Input,
        onProgress: EndpointProgress? = nil
    ) async throws(Service.RequestError) -> Output {
        try await response(to: client, with: input, onProgress: onProgress).value
    }

    /// Calls the endpoint and returns the response too; otherwise like ``makeRequest(to:with:onProgress:)``.
    public func response(
        to client: ServiceClient<Service>? = nil,
        with input: Input,
        onProgress: EndpointProgress? = nil
    ) async throws(Service.RequestError) -> DecodedResponse<Output> {
        let input = EndpointInput.values(input, as: Self.inputFormat)
        return try await send(to: client, input: input, output: .values(), onProgress: onProgress)
    }
}
