// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation

/// How the responses of endpoints are read; further ones are made of a ``BodyDecoder``.
public struct OutputFormat: Sendable, CustomStringConvertible {
    /// What the format is called, in errors.
    public let name: String
    /// What requests say in their Accept field.
    public let accept: String
    /// Whether output may be a bare number, truth value or date.
    public let takesScalars: Bool
    let decoder: any BodyDecoder

    /// A format.
    ///
    /// - Parameters:
    ///   - name: what it is called.
    ///   - accept: a media range (RFC 9110 §12.5.1).
    ///   - takesScalars: whether output may be a bare number, truth value or date; false by default.
    ///   - decoder: what reads.
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

/// Reads the responses of endpoints in a format.
public protocol BodyDecoder: Sendable {
    /// Makes a value of content, which is not empty.
    ///
    /// - Parameters:
    ///   - type: never `Data` or `String`, which are the content as it came.
    ///   - content: from a server or a store; anything may stand there.
    ///   - coding: who asks, to have decoders set up.
    func decode<Output: Decodable>(_ type: Output.Type, from content: Data, _ coding: EndpointCoding) throws -> Output
}
