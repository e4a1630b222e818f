// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation

/// Encodes names and texts with a ``KeyValueEncoder``.
struct KeyValueBody: BodyEncoder {
    /// Where the encoded input goes.
    enum Place {
        case query
        case form
        case multipartForm
    }

    let place: Place

    func encode<Input: Encodable>(_ input: Input, _ coding: EndpointCoding) throws -> EncodedInput {
        var encoder = KeyValueEncoder()
        try coding.configure(&encoder)
        switch place {
        case .query: return EncodedInput(query: try encoder.query(of: input))
        case .form: return EncodedInput(body: try encoder.form(of: input))
        case .multipartForm: return EncodedInput(body: .multipart(try encoder.multipartForm(of: input)))
        }
    }
}

extension InputFormat {
    /// Names and texts in the URL's query, from a ``KeyValueEncoder``, sorted by name; no content, whatever the method.
    public static let urlQuery = InputFormat(name: "urlQuery", encoder: KeyValueBody(place: .query))

    /// Names and texts in the content, as `application/x-www-form-urlencoded`, from a ``KeyValueEncoder``.
    public static let formURLEncoded = InputFormat(name: "formURLEncoded", encoder: KeyValueBody(place: .form))

    /// Parts of a form, as `multipart/form-data` (RFC 7578), from a ``KeyValueEncoder``; every ``File`` is a part with its own
    /// name and type.
    public static let formData = InputFormat(name: "formData", encoder: KeyValueBody(place: .multipartForm))
}

extension EndpointCoding {
    /// Sets up the encoder of queries and forms.
    public func configure(_ encoder: inout KeyValueEncoder) throws {
        try service.configure(&encoder, for: endpoint)
        try endpoint.configure(&encoder)
    }
}

extension KeyValueEncoder {
    /// The value as a multipart form, in its own order: each ``File`` is a part with a file name, everything else a text field;
    /// null is an empty field.
    ///
    /// - Throws: the same as ``pairs(of:)``.
    public func multipartForm(of value: some Encodable) throws -> MultipartForm {
        let tree = try tree(of: value) { $0 as? File }
        return MultipartForm(
            try KeyValueWriter(self).leaves(of: tree).map { leaf in
                switch leaf.content {
                case .null: .field(leaf.name, "")
                case .text(let text): .field(leaf.name, text)
                case .whole(let file): (file as? File)?.part(named: leaf.name) ?? .field(leaf.name, "")
                }
            }
        )
    }
}
