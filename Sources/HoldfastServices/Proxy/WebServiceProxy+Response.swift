// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation
public import Holdfast

/// The same calls with details of how they went: the source of the response, its attempts, what the cache did.
extension WebServiceProxy {
    /// Calls the service; like `invoke` without a result.
    public func response(
        _ method: Method,
        path: String,
        arguments: [String: (any QueryArgumentConvertible)?] = [:],
        content: Data? = nil,
        contentType: String? = nil
    ) async throws -> DecodedResponse<Void> {
        try await response(
            method,
            path: path,
            arguments: arguments,
            content: content,
            contentType: contentType,
            responseHandler: { _, _ in }
        )
    }

    /// Sends a value as JSON; like `invoke` with a body and without a result.
    public func response<B: Encodable>(
        _ method: Method,
        path: String,
        arguments: [String: (any QueryArgumentConvertible)?] = [:],
        body: B
    ) async throws -> DecodedResponse<Void> {
        try await send(method, path: path, arguments: arguments, body: .json(body), contentType: nil) { _, _ in }
    }

    /// Calls the service and decodes its JSON response; like `invoke` with a JSON result.
    public func response<T: Decodable & Sendable>(
        _ method: Method,
        path: String,
        arguments: [String: (any QueryArgumentConvertible)?] = [:],
        content: Data? = nil,
        contentType: String? = nil
    ) async throws -> DecodedResponse<T> {
        let (body, type) = HttpBody.of(content, contentType)
        return try await decoding(method, path: path, arguments: arguments, body: body, contentType: type)
    }

    /// Sends a value as JSON and decodes the JSON response; like `invoke` with JSON both ways.
    public func response<B: Encodable, T: Decodable & Sendable>(
        _ method: Method,
        path: String,
        arguments: [String: (any QueryArgumentConvertible)?] = [:],
        body: B
    ) async throws -> DecodedResponse<T> {
        try await decoding(method, path: path, arguments: arguments, body: .json(body), contentType: nil)
    }

    /// Calls the service; `responseHandler` makes the result; like `invoke` with a handler.
    public func response<T: Sendable>(
        _ method: Method,
        path: String,
        arguments: [String: (any QueryArgumentConvertible)?] = [:],
        content: Data? = nil,
        contentType: String? = nil,
        responseHandler: @escaping ResponseHandler<T>
    ) async throws -> DecodedResponse<T> {
        let (body, type) = HttpBody.of(content, contentType)
        return try await send(
            method,
            path: path,
            arguments: arguments,
            body: body,
            contentType: type,
            handler: responseHandler
        )
    }

    private func decoding<T: Decodable & Sendable>(
        _ method: Method,
        path: String,
        arguments: [String: (any QueryArgumentConvertible)?],
        body: HttpBody,
        contentType: String?
    ) async throws -> DecodedResponse<T> {
        try await send(
            method,
            path: path,
            arguments: arguments,
            body: body,
            contentType: contentType,
            decodesItself: true
        ) { content, _ in
            try ServiceJSON.decode(T.self, from: content)
        }
    }

    private func send<T>(
        _ method: Method,
        path: String,
        arguments: [String: (any QueryArgumentConvertible)?],
        body: HttpBody,
        contentType: String?,
        decodesItself: Bool = false,
        handler: @escaping ResponseHandler<T>
    ) async throws -> DecodedResponse<T> {
        var header = HttpHeader()
        if let contentType { header[.contentType] = contentType }
        let invocation = Invocation(
            method: method,
            target: Result { () throws(WebServiceError) in try ProxyTarget.text(base: baseURL, path: path) },
            arguments: arguments,
            sharedFields: headers,
            header: header,
            body: body,
            options: options,
            timeout: timeout,
            contentLimit: contentLimit,
            handler: handler,
            decodesItself: decodesItself
        )
        return try await client.response(to: invocation)
    }
}

extension HttpBody {
    /// Bytes with their type; a type without bytes is not sent.
    fileprivate static func of(_ content: Data?, _ contentType: String?) -> (HttpBody, String?) {
        content.map { (.data($0), contentType) } ?? (.empty, nil)
    }

    /// A value as JSON, encoded at once, so that it need not be sendable.
    fileprivate static func json<B: Encodable>(_ value: B) -> HttpBody {
        let encoded = Result { try ServiceJSON.encoder().encode(value) }
        return HttpBody { Encoded(contentType: "application/json", content: .data(try encoded.get())) }
    }
}
