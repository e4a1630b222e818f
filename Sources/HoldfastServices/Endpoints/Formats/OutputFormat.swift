// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation

/// How the responses of endpoints are decoded; make other formats with a ``BodyDecoder``.
public struct OutputFormat: Sendable, CustomStringConvertible {
    /// The name of the format, used in errors.
    public let name: String
    /// The Accept field of requests.
    public let accept: String
    /// Whether the output may be a single number, boolean or date.
    public let takesScalars: Bool
    let decoder: any BodyDecoder

    /// Creates a format.
    ///
    /// - Parameters:
    ///   - name: the name, used in errors.
    ///   - accept: a media range (RFC 9110 §12.5.1).
    ///   - takesScalars: whether the output may be a single number, boolean or date; false by default.
    ///   - decoder: decodes the responses.
    public init(name: String, accept: String, takesScalars: Bool = false, decoder: any BodyDecoder) {
        self.name = name
        self.accept = accept
        self.takesScalars = takesScalars
        self.decoder = decoder
    }

    /// JSON (RFC 8259).
    public static let JSON = OutputFormat(
        name: "JSON",
        accept: "application/json",
        takesScalars: true,
        decoder: JSONBody()
    )

    public var description: String { name }
}

/// Decodes the responses of endpoints in one format.
public protocol BodyDecoder: Sendable {
    /// Decodes content, which is not empty.
    ///
    /// - Parameters:
    ///   - type: never `Data` or `String`, which are the unchanged content.
    ///   - content: comes from a server or a store, so it may contain anything.
    ///   - coding: the endpoint and service, for setting up decoders.
    func decode<Output: Decodable>(_ type: Output.Type, from content: Data, _ coding: EndpointCoding) throws -> Output
}
