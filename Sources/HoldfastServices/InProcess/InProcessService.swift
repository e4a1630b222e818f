// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Holdfast

#if canImport(FoundationNetworking)
    internal import Foundation
    public import FoundationNetworking
#else
    public import Foundation
#endif

/// A service in this process that answers requests as a server would.
///
/// Many tasks call it at once, in any order: keep state behind a lock.
public protocol InProcessService: Sendable {
    /// The name that the router finds the service by: the first path component of `http://pmapi/<identifier>/…`.
    /// Case-sensitive.
    var serviceIdentifier: String { get }

    /// Answers a request.
    ///
    /// - Parameters:
    ///   - request: the request that was sent.
    ///   - body: its content.
    /// - Throws: any error, as a transport would: a `ServiceError` with a progress simulates a connection that broke at that
    ///   point.
    func respond(to request: URLRequest, body: RequestBody) async throws -> Response

    /// Called after the service was registered with a router; does nothing by default.
    func registered()

    /// Called after the service was unregistered from a router; does nothing by default. Calls may still be in progress.
    func unregistered()
}

extension InProcessService {
    public func registered() {}
    public func unregistered() {}
}

/// A service made from a closure.
public struct AnyInProcessService: InProcessService {
    public let serviceIdentifier: String
    private let answer: @Sendable (URLRequest, RequestBody) async throws -> Response

    /// Creates a service that calls `answer` for each response.
    public init(
        _ serviceIdentifier: String,
        answer: @escaping @Sendable (URLRequest, RequestBody) async throws -> Response
    ) {
        self.serviceIdentifier = serviceIdentifier
        self.answer = answer
    }

    public func respond(to request: URLRequest, body: RequestBody) async throws -> Response {
        try await answer(request, body)
    }
}
