// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import Holdfast

/// What an endpoint makes of its response's content.
struct EndpointOutput<Output: Sendable>: Sendable {
    /// Refuses a format that cannot stand for the output, before anything is sent.
    let check: @Sendable (_ format: OutputFormat) throws -> Void
    let decode: @Sendable (_ response: Response, _ content: Data, _ coding: EndpointCoding) throws -> Output
    /// Takes a response in whole, in place of collecting its content; nil where that is to be collected.
    var take: (@Sendable (_ response: inout Response) async throws -> Output)?
}

extension EndpointOutput where Output == Void {
    /// No output: the content is not looked at.
    static var nothing: EndpointOutput { EndpointOutput(check: { _ in }, decode: { _, _, _ in }) }
}

extension EndpointOutput where Output: Decodable {
    /// Values; text and bytes are the content as it came.
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
    /// How the endpoint's responses are read.
    fileprivate var outputFormat: OutputFormat { type(of: endpoint).outputFormat }
}

/// The cause of an error about content that is not there.
struct MissingData: Error, CustomStringConvertible {
    var description: String { "no content" }
}
