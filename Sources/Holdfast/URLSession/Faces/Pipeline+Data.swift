// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation

#if canImport(FoundationNetworking)
    public import FoundationNetworking
#endif

extension Pipeline {
    /// Loads a URL and its whole body, as `URLSession.data(for:)` does: a call site changes its receiver and nothing else.
    ///
    /// Any status is a success, as with URLSession, and the response is an `HTTPURLResponse`. The body is held in memory whole;
    /// use ``bytes(for:options:)``, ``download(for:options:)`` or ``send(_:body:options:)`` to stream it.
    ///
    /// - Throws: ``ServiceError``, or `CancellationError` promptly after cancellation.
    public func data(
        for request: URLRequest,
        options: CallOptions = CallOptions()
    ) async throws -> (Data, URLResponse) {
        try await data(for: request, body: nil, options: options)
    }

    /// Loads a URL and its whole body; as ``data(for:options:)`` with a plain GET.
    public func data(from url: URL, options: CallOptions = CallOptions()) async throws -> (Data, URLResponse) {
        try await data(for: URLRequest(url: url), options: options)
    }

    /// Sends `body`, or what the request itself carries, and collects the answer.
    func data(for request: URLRequest, body: RequestBody?, options: CallOptions) async throws -> (Data, URLResponse) {
        let response = try await send(request, body: body, options: options)
        return try await response.releasingBody {
            let head = try response.foundationResponse()
            return (try await response.body.data(), head)
        }
    }
}

extension Response {
    /// The head in Foundation's form; the one place where the faces get it, should a response ever bring it with it.
    func foundationResponse() throws -> URLResponse {
        if let made = makeHTTPURLResponse() { return made }
        throw ServiceError(
            .badRequest,
            "The request has no URL, so no HTTPURLResponse can be made; give it one.",
            response: self
        )
    }

    /// Takes what is wanted of the response; where that fails, the transfer ends and cancellation is named by one word.
    func releasingBody<Wanted>(_ take: () async throws -> Wanted) async throws -> Wanted {
        do {
            return try await take()
        } catch {
            body.discard()
            throw error.isCancellation ? CancellationError() : error
        }
    }
}
