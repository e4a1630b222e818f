// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import Holdfast

/// How an endpoint's output is made from the response's content.
struct EndpointOutput<Output: Sendable>: Sendable {
    /// Rejects a format that cannot represent the output, before anything is sent.
    let check: @Sendable (_ format: OutputFormat) throws -> Void
    let decode: @Sendable (_ response: Response, _ content: Data, _ coding: EndpointCoding) throws -> Output
    /// Takes the whole response, instead of collecting its content; nil: the content is collected.
    var take: (@Sendable (_ response: inout Response) async throws -> Output)?
}

extension EndpointOutput where Output == Void {
    /// No output: the content is ignored.
    static var nothing: EndpointOutput { EndpointOutput(check: { _ in }, decode: { _, _, _ in }) }
}

extension EndpointOutput where Output: Decodable {
    /// Values; text and bytes are the unchanged content.
    static func values() -> EndpointOutput {
        EndpointOutput(check: { try check($0) }, decode: { try value(of: $0, content: $1, coding: $2) })
    }

    private static func check(_ format: OutputFormat) throws {
        guard format.takesScalars || !(Output.self is any BareScalar.Type) else {
            throw ServiceError(
                .decodingFailed,
                "A bare \(Output.self) cannot be read as \(format): make the output a struct whose members have names, or ask for "
                    + "JSON.",
                progress: .notSent
            )
        }
    }

    private static func value(of response: Response, content: Data, coding: EndpointCoding) throws -> Output {
        if Output.self == Data.self, let data = content as? Output { return data }
        if Output.self == String.self, let text = String(data: content, encoding: .utf8) as? Output { return text }
        if content.isEmpty {
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
        if Output.self == String?.self, let text = String(data: content, encoding: .utf8) as? Output { return text }
        do {
            return try coding.outputFormat.decoder.decode(Output.self, from: content, coding)
        } catch {
            throw ServiceError.decodingFailed(as: Output.self, cause: error, response)
        }
    }
}

extension EndpointCoding {
    /// The format of the endpoint's responses.
    fileprivate var outputFormat: OutputFormat { type(of: endpoint).outputFormat }
}

/// The cause of an error about missing content.
struct MissingData: Error, CustomStringConvertible {
    var description: String { "no content" }
}
