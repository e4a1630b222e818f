// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// An endpoint with output only.
public protocol OutEndpoint: Endpoint where EndpointKind == EndpointKinds.Out {
    /// What a response is decoded to. A single number, boolean or date needs JSON; `Data` and `String` are the unchanged
    /// content, whatever the format.
    associatedtype Output: Decodable & Sendable
}

extension OutEndpoint {
    /// Calls the endpoint.
    ///
    /// - Parameters:
    ///   - client: sends the call; the service's shared client by default.
    ///   - onProgress: is called with the received share of the response, from 0 to 1.
    /// - Throws: ``EndpointError`` or `CancellationError`, unless the service's `mapError` returns something else.
    public func makeRequest(
        to client: ServiceClient<Service>? = nil,
        onProgress: EndpointProgress? = nil
    ) async throws(Service.RequestError) -> Output {
        try await response(to: client, onProgress: onProgress).value
    }

    /// Calls the endpoint and returns the response too; otherwise like ``makeRequest(to:onProgress:)``.
    public func response(
        to client: ServiceClient<Service>? = nil,
        onProgress: EndpointProgress? = nil
    ) async throws(Service.RequestError) -> DecodedResponse<Output> {
        try await send(to: client ?? Service.current, onProgress: onProgress) { service, progress in
            EndpointCall<Self, Output>(self, service: service, input: .nothing, output: .values(), progress: progress)
        }
    }
}
