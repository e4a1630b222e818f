// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

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
        try await send(to: client ?? Service.current, onProgress: onProgress) { service, progress in
            EndpointCall<Self, Void>(self, service: service, input: .nothing, output: .nothing, progress: progress)
        }
    }
}
