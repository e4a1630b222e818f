// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if XML
    internal import Foundation
    internal import HoldfastServices
    internal import XMLCoder

    /// Encodes and decodes XML with XMLCoder, within limits.
    struct XMLBody: BodyEncoder, BodyDecoder {
        /// The name of the outermost element of encoded XML.
        var rootNode = "root"
        var limits = XMLLimits()

        func encode<Input: Encodable>(_ input: Input, for coding: EndpointCoding) throws -> EncodedInput {
            // XMLCoder stops the process if a value has no parts, contains itself, or asks for two containers at once.
            try KeyValueEncoding.checkShape(of: input)
            let encoder = XMLEncoder()
            try coding.configure(encoder)
            let header = XMLHeader(version: 1.0, encoding: "UTF-8")
            let content = try encoder.encode(input, withRootKey: rootNode, header: header)
            do {
                // An invalid element name, or a control character in a text, would make it malformed.
                _ = try XMLSanitizer.sanitized(XMLText.utf8(of: content), limits: .unlimited)
            } catch {
                throw EncodingError.invalidValue(
                    Input.self,
                    EncodingError.Context(
                        codingPath: [],
                        debugDescription:
                            "\(Input.self) cannot be written as XML: a key is not a valid name, or a text has control characters.",
                        underlyingError: error
                    )
                )
            }
            return EncodedInput(body: .data(content, contentType: "text/xml; charset=utf-8"))
        }

        func decode<Output: Decodable>(_ type: Output.Type, from content: Data, for coding: EndpointCoding) throws
            -> Output
        {
            let decoder = XMLDecoder()
            try coding.configure(decoder)
            // XMLCoder reads past the document's end when it adds an excerpt to the error.
            decoder.errorContextLength = 0
            guard content.count <= limits.bytes else {
                throw XMLText.refusal("It has \(content.count) bytes, but only \(limits.bytes) are allowed.")
            }
            let bytes = try XMLSanitizer.sanitized(XMLText.utf8(of: content), limits: limits)
            return try decoder.decode(type, from: Data(bytes))
        }
    }
#endif
