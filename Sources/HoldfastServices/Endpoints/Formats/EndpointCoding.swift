// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation

/// The endpoint and service that input is encoded or a response decoded for; sets up encoders and decoders, first by the
/// service and then by the endpoint.
public struct EndpointCoding: Sendable {
    /// The endpoint that is called.
    public let endpoint: any Endpoint
    /// The service it belongs to.
    public let service: any WebService

    /// Creates the coding for an endpoint of a service.
    public init(endpoint: any Endpoint, service: any WebService) {
        self.endpoint = endpoint
        self.service = service
    }

    /// Sets up the JSON encoder.
    public func configure(_ encoder: inout JSONEncoder) throws {
        try service.configure(&encoder, for: endpoint)
        try endpoint.configure(&encoder)
    }

    /// Sets up the JSON decoder.
    public func configure(_ decoder: inout JSONDecoder) throws {
        try service.configure(&decoder, for: endpoint)
        try endpoint.configure(&decoder)
    }
}
