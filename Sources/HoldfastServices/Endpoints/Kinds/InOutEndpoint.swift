// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// An endpoint with input and output.
public protocol InOutEndpoint: Endpoint where EndpointKind == EndpointKinds.InOut {
    /// What is sent: values with names. No bare number, truth value or date, unless the format is JSON; `Data` and `String`
    /// go out as they are, whatever the format.
    associatedtype Input: Encodable & Sendable
    /// What a response is decoded to. No bare number, truth value or date, unless the format is JSON; `Data` and `String` are
    /// the content as it came, whatever the format.
    associatedtype Output: Decodable & Sendable
    /// How input is written; JSON by default.
    static var inputFormat: InputFormat { get }
}

extension InOutEndpoint {
    public static var inputFormat: InputFormat { .JSON }

    /// Calls the endpoint.
    ///
    /// - Parameters:
    ///   - client: what sends; the service's shared client by default.
    ///   - input: what is sent; encoded once, before anything else.
    ///   - onProgress: is told how much of the response has come, from 0 to 1.
    /// - Throws: ``EndpointError`` or `CancellationError`, unless the service's `mapError` says otherwise.
    public func makeRequest(
        to client: ServiceClient<Service>? = nil,
        with input: Input,
        onProgress: EndpointProgress? = nil
    ) async throws(Service.RequestError) -> Output {
        try await response(to: client, with: input, onProgress: onProgress).value
    }

    /// Calls the endpoint and returns the response too; as ``makeRequest(to:with:onProgress:)`` otherwise.
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
