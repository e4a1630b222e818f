// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import Holdfast

/// Encodes and decodes JSON with the coders of ``ServiceJSON``, which service and endpoint set up.
struct JSONBody: BodyEncoder, BodyDecoder {
    func encode<Input: Encodable>(_ input: Input, _ coding: EndpointCoding) throws -> EncodedInput {
        var encoder = ServiceJSON.encoder()
        try coding.configure(&encoder)
        return EncodedInput(body: .data(try encoder.encode(input), contentType: "application/json"))
    }

    func decode<Output: Decodable>(_ type: Output.Type, from content: Data, _ coding: EndpointCoding) throws -> Output {
        var decoder = ServiceJSON.decoder()
        try coding.configure(&decoder)
        return try decoder.decode(type, from: content)
    }
}
