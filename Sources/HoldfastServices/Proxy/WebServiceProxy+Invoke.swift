// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation
public import Holdfast

/// Makes the result of a response's content.
///
/// Called for accepted responses alone, on the task of the call, and once more where a stored response is used again.
///
/// - Parameters:
///   - content: the content, empty where there is none.
///   - contentType: its media type in lower case, without parameters; nil where the response names none.
public typealias ResponseHandler<T> = @Sendable (_ content: Data, _ contentType: String?) throws -> T

/// All of these throw ``WebServiceError`` for a status outside 200 to 299 and for arguments and paths that cannot be sent,
/// `URLError` where the exchange failed, `EncodingError` and `DecodingError` as they are, `CancellationError` promptly, and
/// ``ServiceError`` for what has no `URLError`.
extension WebServiceProxy {
    /// Calls the service and ignores the content of its answer.
    ///
    /// - Parameters:
    ///   - method: the method.
    ///   - path: the path below ``baseURL``, percent-encoded where need be; it may have a query. Empty: the base itself.
    ///   - arguments: query arguments by name, for every method; nil and ``undefined`` are left out, arrays repeat the name.
    ///   - content: the content to send; none by default.
    ///   - contentType: its media type; by default what ``headers`` say, or else `application/octet-stream`. Without content
    ///     it is not sent.
    public func invoke(
        _ method: Method,
        path: String,
        arguments: [String: (any QueryArgumentConvertible)?] = [:],
        content: Data? = nil,
        contentType: String? = nil
    ) async throws {
        try await response(method, path: path, arguments: arguments, content: content, contentType: contentType).value
    }

    /// Sends a value as JSON and ignores the content of the answer.
    ///
    /// - Parameters:
    ///   - method: the method.
    ///   - path: the path below ``baseURL``, percent-encoded where need be; it may have a query. Empty: the base itself.
    ///   - arguments: query arguments by name, for every method; nil and ``undefined`` are left out, arrays repeat the name.
    ///   - body: sent with dates as milliseconds since 1970 and keys in order; its media type is what ``headers`` say, or else
    ///     `application/json`.
    public func invoke<B: Encodable>(
        _ method: Method,
        path: String,
        arguments: [String: (any QueryArgumentConvertible)?] = [:],
        body: B
    ) async throws {
        try await response(method, path: path, arguments: arguments, body: body).value
    }

    /// Calls the service and decodes its JSON answer.
    ///
    /// Dates are read as milliseconds since 1970. An empty content is nil where `T` is an Optional, else a `DecodingError`.
    public func invoke<T: Decodable & Sendable>(
        _ method: Method,
        path: String,
        arguments: [String: (any QueryArgumentConvertible)?] = [:],
        content: Data? = nil,
        contentType: String? = nil
    ) async throws -> T {
        try await response(method, path: path, arguments: arguments, content: content, contentType: contentType).value
    }

    /// Sends a value as JSON and decodes the JSON answer.
    public func invoke<B: Encodable, T: Decodable & Sendable>(
        _ method: Method,
        path: String,
        arguments: [String: (any QueryArgumentConvertible)?] = [:],
        body: B
    ) async throws -> T {
        try await response(method, path: path, arguments: arguments, body: body).value
    }

    /// Calls the service and has `responseHandler` make the result of its answer.
    ///
    /// - Parameters:
    ///   - method: the method.
    ///   - path: the path below ``baseURL``, percent-encoded where need be; it may have a query. Empty: the base itself.
    ///   - arguments: query arguments by name, for every method; nil and ``undefined`` are left out, arrays repeat the name.
    ///   - content: the content to send; none by default.
    ///   - contentType: its media type; by default what ``headers`` say, or else `application/octet-stream`. Without content
    ///     it is not sent.
    ///   - responseHandler: what it throws fails the call and is thrown as it is.
    public func invoke<T: Sendable>(
        _ method: Method,
        path: String,
        arguments: [String: (any QueryArgumentConvertible)?] = [:],
        content: Data? = nil,
        contentType: String? = nil,
        responseHandler: @escaping ResponseHandler<T>
    ) async throws -> T {
        try await response(
            method,
            path: path,
            arguments: arguments,
            content: content,
            contentType: contentType,
            responseHandler: responseHandler
        ).value
    }
}
