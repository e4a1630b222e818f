// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Holdfast

#if canImport(FoundationNetworking)
    internal import Foundation
    public import FoundationNetworking
#else
    public import Foundation
#endif

/// A service that lives in this process and answers requests as a server would.
///
/// Called by many tasks at once, from any of them, in any order: keep state behind a lock.
public protocol InProcessService: Sendable {
    /// The name by which a router finds the service: the first path component of `http://pmapi/<identifier>/…`. Exact,
    /// case counts.
    var serviceIdentifier: String { get }

    /// Answers a request.
    ///
    /// - Parameters:
    ///   - request: the very request that was sent.
    ///   - body: its content.
    /// - Throws: anything, as a transport would: a `ServiceError` with a progress acts a connection that broke there.
    func respond(to request: URLRequest, body: RequestBody) async throws -> Response

    /// Called once the service was registered with a router; does nothing by default.
    func registered()

    /// Called once the service was unregistered from a router; does nothing by default. Calls in flight may still be running.
    func unregistered()
}

extension InProcessService {
    public func registered() {}
    public func unregistered() {}
}

/// A service made of a closure.
public struct AnyInProcessService: InProcessService {
    public let serviceIdentifier: String
    private let answer: @Sendable (URLRequest, RequestBody) async throws -> Response

    /// A service that asks `answer` for each response.
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
