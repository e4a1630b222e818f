// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation

/// For whom input is written or a response read: has encoders and decoders set up, by the service first and then by the endpoint.
public struct EndpointCoding: Sendable {
    /// The endpoint that is called.
    public let endpoint: any Endpoint
    /// The service it belongs to.
    public let service: any WebService

    /// Coding for an endpoint of a service.
    public init(endpoint: any Endpoint, service: any WebService) {
        self.endpoint = endpoint
        self.service = service
    }

    /// Sets up what encodes JSON.
    public func configure(_ encoder: inout JSONEncoder) throws {
        try service.configure(&encoder, for: endpoint)
        try endpoint.configure(&encoder)
    }

    /// Sets up what decodes JSON.
    public func configure(_ decoder: inout JSONDecoder) throws {
        try service.configure(&decoder, for: endpoint)
        try endpoint.configure(&decoder)
    }
}
