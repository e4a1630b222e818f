// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation
internal import Holdfast

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
    func decode<Output: Decodable>(_ type: Output.Type, from content: Data, for coding: EndpointCoding) throws -> Output
}

/// How an endpoint's output is made from the response's content.
struct EndpointOutput<Output: Sendable>: Sendable {
    let decode: @Sendable (_ response: Response, _ content: Data, _ coding: EndpointCoding) throws -> Output
    /// Takes the whole response, instead of collecting its content; nil: the content is collected.
    var take: (@Sendable (_ response: inout Response) async throws -> Output)?
}

extension EndpointOutput where Output == Void {
    /// No output: the content is ignored.
    static var nothing: EndpointOutput { EndpointOutput { _, _, _ in } }
}

extension EndpointOutput where Output: Decodable {
    /// Values; text and bytes are the unchanged content.
    static func values() -> EndpointOutput { EndpointOutput { try value(of: $0, content: $1, coding: $2) } }

    private static func value(of response: Response, content: Data, coding: EndpointCoding) throws -> Output {
        if Output.self == Data.self, let data = content as? Output { return data }
        if content.isEmpty, Output.self != String.self {
            if let type = Output.self as? any ExpressibleByNilLiteral.Type,
                let absent = type.init(nilLiteral: ()) as? Output
            {
                return absent
            }
            throw ServiceError(
                .decodingFailed,
                "The response (status \(response.status.rawValue)) has no content, and \(Output.self) was expected; make the "
                    + "output optional, or adopt a kind of endpoint without output.",
                cause: MissingData(),
                progress: .headReceived,
                response: response
            )
        }
        if Output.self == Data?.self, let data = content as? Output { return data }
        do {
            if Output.self == String.self || Output.self == String?.self,
                let text = try ServiceError.text(of: content) as? Output
            {
                return text
            }
            return try type(of: coding.endpoint).outputFormat.decoder.decode(Output.self, from: content, for: coding)
        } catch {
            throw ServiceError.decodingFailed(as: Output.self, cause: error, response)
        }
    }
}

extension OutputFormat {
    /// Throws if this format cannot represent the output, before anything is sent.
    func check<Output>(_ output: Output.Type) throws {
        guard takesScalars || !isBareScalar(output) else {
            throw ServiceError(
                .decodingFailed,
                "A bare \(output) cannot be read as \(self): make the output a struct whose members have names, or ask for JSON.",
                progress: .notSent
            )
        }
    }
}

/// The cause of an error about missing content.
struct MissingData: Error, CustomStringConvertible {
    var description: String { "no content" }
}

/// Encodes and decodes JSON with the coders of ``ServiceJSON``, which service and endpoint set up.
struct JSONBody: BodyEncoder, BodyDecoder {
    func encode<Input: Encodable>(_ input: Input, for coding: EndpointCoding) throws -> EncodedInput {
        var encoder = ServiceJSON.encoder()
        try coding.configure(&encoder)
        return EncodedInput(body: .data(try encoder.encode(input), contentType: "application/json"))
    }

    func decode<Output: Decodable>(_ type: Output.Type, from content: Data, for coding: EndpointCoding) throws -> Output
    {
        var decoder = ServiceJSON.decoder()
        try coding.configure(&decoder)
        return try decoder.decode(type, from: content)
    }
}
