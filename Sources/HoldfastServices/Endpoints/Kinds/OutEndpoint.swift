// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// An endpoint with output only.
public protocol OutEndpoint: Endpoint where EndpointKind == EndpointKinds.Out {
    /// What a response is decoded to. No bare number, truth value or date, unless the format is JSON; `Data` and `String` are
    /// the content as it came, whatever the format.
    associatedtype Output: Decodable & Sendable
}

extension OutEndpoint {
    /// Calls the endpoint.
    ///
    /// - Parameters:
    ///   - client: what sends; the service's shared client by default.
    ///   - onProgress: is told how much of the response has come, from 0 to 1.
    /// - Throws: ``EndpointError`` or `CancellationError`, unless the service's `mapError` says otherwise.
    public func makeRequest(
        to client: ServiceClient<Service>? = nil,
        onProgress: EndpointProgress? = nil
    ) async throws(Service.RequestError) -> Output {
        try await response(to: client, onProgress: onProgress).value
    }

    /// Calls the endpoint and returns the response too; as ``makeRequest(to:onProgress:)`` otherwise.
    public func response(
        to client: ServiceClient<Service>? = nil,
        onProgress: EndpointProgress? = nil
    ) async throws(Service.RequestError) -> DecodedResponse<Output> {
        try await send(to: client ?? Service.current, onProgress: onProgress) { service, progress in
            EndpointCall<Self, Output>(self, service: service, input: .nothing, output: .values(), progress: progress)
        }
    }
}
