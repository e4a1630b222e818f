// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation

#if canImport(FoundationNetworking)
    public import FoundationNetworking
#endif

extension Pipeline {
    /// Loads a URL and its whole body, as `URLSession.data(for:)` does: a call site changes its receiver and nothing else.
    ///
    /// Any status is a success, as with URLSession. The body is held in memory whole; use ``send(_:body:options:)`` to stream it.
    ///
    /// - Throws: ``ServiceError``, or `CancellationError` promptly after cancellation.
    public func data(for request: URLRequest) async throws -> (Data, HTTPURLResponse) {
        let response = try await send(request)
        let data = try await response.body.data()
        guard let head = response.makeHTTPURLResponse() else {
            throw ServiceError(
                .badRequest,
                "The request has no URL, so no HTTPURLResponse can be made; give it one.",
                response: response
            )
        }
        return (data, head)
    }

    /// Loads a URL and its whole body; as ``data(for:)`` with a plain GET.
    public func data(from url: URL) async throws -> (Data, HTTPURLResponse) {
        try await data(for: URLRequest(url: url))
    }
}
