// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// An endpoint with neither input nor output: it succeeds or fails by the judgement of its response alone.
public protocol EmptyEndpoint: Endpoint where EndpointKind == EndpointKinds.Empty {}

extension EmptyEndpoint {
    /// Calls the endpoint.
    ///
    /// - Parameters:
    ///   - client: what sends; the service's shared client by default.
    ///   - onProgress: is told how much of the response has come, from 0 to 1.
    /// - Throws: ``EndpointError`` or `CancellationError`, unless the service's `mapError` says otherwise.
    public func makeRequest(
        to client: ServiceClient<Service>? = nil,
        onProgress: EndpointProgress? = nil
    ) async throws(Service.RequestError) {
        _ = try await response(to: client, onProgress: onProgress)
    }

    /// Calls the endpoint and returns the response too; as ``makeRequest(to:onProgress:)`` otherwise.
    public func response(
        to client: ServiceClient<Service>? = nil,
        onProgress: EndpointProgress? = nil
    ) async throws(Service.RequestError) -> DecodedResponse<Void> {
        try await send(to: client ?? Service.current, onProgress: onProgress) { service, progress in
            EndpointCall<Self, Void>(self, service: service, input: .nothing, output: .nothing, progress: progress)
        }
    }
}
