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
                _ = try XMLSanitizer.sanitized(XMLText.utf8(of: content), limits: .unlimited, trimsTexts: false)
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
            let bytes = try XMLSanitizer.sanitized(
                XMLText.utf8(of: content),
                limits: limits,
                trimsTexts: decoder.trimValueWhitespaces
            )
            decoder.trimValueWhitespaces = false
            guard bytes.count < XMLLimits.parserBytes else {
                throw XMLText.refusal(
                    "It needs \(bytes.count) bytes with the references in its texts, and "
                        + "Foundation's parser reads less than \(XMLLimits.parserBytes). Request it in parts."
                )
            }
            return try decoder.decode(type, from: Data(bytes))
        }
    }

    /// How much XML is accepted; more is rejected before a parser sees it.
    ///
    /// The platforms' parsers have no such limits: a document with a hundred thousand nested elements stops a process, and one
    /// with many attributes or references keeps it busy for a time that grows with the square of their number.
    public struct XMLLimits: Sendable, Hashable {
        /// The most bytes of a document; 16 MiB by default. Foundation's parser reads less than 10,000,000 bytes, where
        /// each `<`, `>` and `&` of a text counts as five.
        public var bytes = 16 << 20
        /// The most elements nested in each other, 1 to 256; 64 by default.
        public var depth = 64
        /// The most elements and attributes together; 200 000 by default.
        public var nodes = 200_000
        /// The most attributes of one element; 256 by default.
        public var attributes = 256

        /// Creates the default limits.
        public init() {}

        /// libxml2's limit for a document, beyond which it fails without saying so.
        static let parserBytes = 10_000_000

        /// No limits, except for a depth of at most 256; for encoded documents.
        static let unlimited: XMLLimits = {
            var limits = XMLLimits()
            limits.bytes = .max
            limits.depth = 256
            limits.nodes = .max
            limits.attributes = .max
            return limits
        }()
    }
#endif
