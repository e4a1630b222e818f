// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation
public import Holdfast

/// Makes the result from a response's content.
///
/// Called only for accepted responses, on the task of the call, and again if a stored response is reused.
///
/// - Parameters:
///   - content: the content, empty if there is none.
///   - contentType: its media type in lower case, without parameters; nil if the response has none.
public typealias ResponseHandler<T> = @Sendable (_ content: Data, _ contentType: String?) throws -> T

/// All of these throw ``WebServiceError`` for a status outside 200 to 299 and for invalid arguments and paths, `URLError` if
/// the exchange failed, `EncodingError` and `DecodingError` unchanged, `CancellationError` promptly, and ``ServiceError`` for
/// errors that have no matching `URLError`.
extension WebServiceProxy {
    /// Calls the service and ignores the content of the response.
    ///
    /// - Parameters:
    ///   - method: the method.
    ///   - path: the path below ``baseURL``, percent-encoded if necessary; it may have a query. Empty: the base itself.
    ///   - arguments: query arguments by name, for every method; nil and ``undefined`` are left out, arrays repeat the name.
    ///   - content: the content to send; none by default.
    ///   - contentType: its media type; by default the one in ``headers``, or else `application/octet-stream`. Not sent without
    ///     content.
    public func invoke(
        _ method: Method,
        path: String,
        arguments: [String: (any QueryArgumentConvertible)?] = [:],
        content: Data? = nil,
        contentType: String? = nil
    ) async throws {
        try await response(method, path: path, arguments: arguments, content: content, contentType: contentType).value
    }

    /// Sends a value as JSON and ignores the content of the response.
    ///
    /// - Parameters:
    ///   - method: the method.
    ///   - path: the path below ``baseURL``, percent-encoded if necessary; it may have a query. Empty: the base itself.
    ///   - arguments: query arguments by name, for every method; nil and ``undefined`` are left out, arrays repeat the name.
    ///   - body: sent with dates as milliseconds since 1970 and sorted keys; its media type is the one in ``headers``, or else
    ///     `application/json`.
    public func invoke<B: Encodable>(
        _ method: Method,
        path: String,
        arguments: [String: (any QueryArgumentConvertible)?] = [:],
        body: B
    ) async throws {
        try await response(method, path: path, arguments: arguments, body: body).value
    }

    /// Calls the service and decodes its JSON response.
    ///
    /// Dates are read as milliseconds since 1970. Empty content is nil if `T` is an Optional, otherwise a `DecodingError`.
    public func invoke<T: Decodable & Sendable>(
        _ method: Method,
        path: String,
        arguments: [String: (any QueryArgumentConvertible)?] = [:],
        content: Data? = nil,
        contentType: String? = nil
    ) async throws -> T {
        try await response(method, path: path, arguments: arguments, content: content, contentType: contentType).value
    }

    /// Sends a value as JSON and decodes the JSON response.
    public func invoke<B: Encodable, T: Decodable & Sendable>(
        _ method: Method,
        path: String,
        arguments: [String: (any QueryArgumentConvertible)?] = [:],
        body: B
    ) async throws -> T {
        try await response(method, path: path, arguments: arguments, body: body).value
    }

    /// Calls the service; `responseHandler` makes the result from the response.
    ///
    /// - Parameters:
    ///   - method: the method.
    ///   - path: the path below ``baseURL``, percent-encoded if necessary; it may have a query. Empty: the base itself.
    ///   - arguments: query arguments by name, for every method; nil and ``undefined`` are left out, arrays repeat the name.
    ///   - content: the content to send; none by default.
    ///   - contentType: its media type; by default the one in ``headers``, or else `application/octet-stream`. Not sent without
    ///     content.
    ///   - responseHandler: makes the result; an error that it throws fails the call and is thrown unchanged.
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
