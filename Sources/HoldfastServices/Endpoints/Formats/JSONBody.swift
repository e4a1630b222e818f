// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import Holdfast

/// Writes and reads JSON by Foundation's coders.
struct JSONBody: BodyEncoder, BodyDecoder {
    func encode<Input: Encodable>(_ input: Input, _ coding: EndpointCoding) throws -> EncodedInput {
        var encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        try coding.configure(&encoder)
        return EncodedInput(body: .data(try encoder.encode(input), contentType: "application/json"))
    }

    func decode<Output: Decodable>(_ type: Output.Type, from content: Data, _ coding: EndpointCoding) throws -> Output {
        var decoder = JSONDecoder()
        try coding.configure(&decoder)
        return try decoder.decode(type, from: content)
    }
}
