// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// An endpoint with input and output.
public protocol InOutEndpoint: Endpoint where EndpointKind == EndpointKinds.InOut {
    /// The values to send, with names. A single number, boolean or date needs JSON; `Data` and `String` are sent unchanged,
    /// whatever the format.
    associatedtype Input: Encodable & Sendable
    /// What a response is decoded to. A single number, boolean or date needs JSON; `Data` and `String` are the unchanged
    /// content, whatever the format.
    associatedtype Output: Decodable & Sendable
    /// How input is encoded; JSON by default.
    static var inputFormat: InputFormat { get }
}

extension InOutEndpoint {
    public static var inputFormat: InputFormat { .JSON }

    /// Calls the endpoint.
    ///
    /// - Parameters:
    ///   - client: sends the call; the service's shared client by default.
    ///   - input: the values to send; encoded once, before anything else.
    ///   - onProgress: is called with the received share of the response, from 0 to 1.
    /// - Throws: ``EndpointError`` or `CancellationError`, unless the service's `mapError` returns something else.
    public func makeRequest(
        to client: ServiceClient<Service>? = nil,
        with input: Input,
        onProgress: EndpointProgress? = nil
    ) async throws(Service.RequestError) -> Output {
        try await response(to: client, with: input, onProgress: onProgress).value
    }

    /// Calls the endpoint and returns the response too; otherwise like ``makeRequest(to:with:onProgress:)``.
    public func response(
        to client: ServiceClient<Service>? = nil,
        with input: Input,
        onProgress: EndpointProgress? = nil
    ) async throws(Service.RequestError) -> DecodedResponse<Output> {
        try await send(to: client ?? Service.current, onProgress: onProgress) { service, progress in
            EndpointCall<Self, Output>(
                self,
                service: service,
                input: .values(input, format: Self.inputFormat),
                output: .values(),
                progress: progress
            )
        }
    }
}
