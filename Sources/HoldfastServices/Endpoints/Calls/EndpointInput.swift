// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import Holdfast

/// The input of an endpoint, before it is encoded.
struct EndpointInput: Sendable {
    let encode: @Sendable (_ coding: EndpointCoding) throws -> EncodedInput

    /// No input.
    static let nothing = EndpointInput { _ in EncodedInput() }

    /// Values; text and bytes are sent unchanged.
    static func values<Input: Encodable & Sendable>(_ input: Input, format: InputFormat) -> EndpointInput {
        EndpointInput { coding in
            if let data = input as? Data { return EncodedInput(body: .data(data)) }
            if let text = input as? String {
                return EncodedInput(body: .data(Data(text.utf8), contentType: "text/plain; charset=utf-8"))
            }
            guard format.takesScalars || !(Input.self is any BareScalar.Type) else {
                throw ServiceError(
                    .encodingFailed,
                    "A bare \(Input.self) cannot be written as \(format): make the input a struct whose members have names, "
                        + "or send it as JSON.",
                    progress: .notSent
                )
            }
            do {
                return try format.encoder.encode(input, coding)
            } catch let error as ServiceError {
                throw error
            } catch {
                throw ServiceError(
                    .encodingFailed,
                    "\(Input.self) cannot be written as \(format); see the cause.",
                    cause: withoutValue(error),
                    progress: .notSent
                )
            }
        }
    }

    /// The error without the value that could not be encoded, which may be a password.
    private static func withoutValue(_ error: any Error) -> any Error {
        guard case EncodingError.invalidValue(let value, let context) = error else { return error }
        return EncodingError.invalidValue(type(of: value), context)
    }
}
