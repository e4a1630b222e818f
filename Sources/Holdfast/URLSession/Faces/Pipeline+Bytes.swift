// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation

#if canImport(FoundationNetworking)
    public import FoundationNetworking
#endif

extension Pipeline {
    /// Returns at the response head, with the body as a sequence of bytes, as `URLSession.bytes(for:)` does on Apple systems;
    /// here it is there on Linux too.
    ///
    /// The bytes come at the pace of their reader as far as the transport allows. Dropping the sequence and its iterators ends
    /// the transfer. Any status is a success, and the response is an `HTTPURLResponse`.
    ///
    /// - Throws: ``ServiceError``, or `CancellationError` promptly after cancellation; the iteration throws the same.
    public func bytes(
        for request: URLRequest,
        options: CallOptions = CallOptions()
    ) async throws -> (ResponseBytes, URLResponse) {
        let response = try await send(request, options: options)
        return try await response.releasingBody {
            (ResponseBytes(response.body), try response.foundationResponse())
        }
    }

    /// Returns at the response head, with the body as a sequence of bytes; as ``bytes(for:options:)`` with a plain GET.
    public func bytes(from url: URL, options: CallOptions = CallOptions()) async throws -> (ResponseBytes, URLResponse)
    {
        try await bytes(for: URLRequest(url: url), options: options)
    }
}
