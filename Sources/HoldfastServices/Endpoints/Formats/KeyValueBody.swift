// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation

/// Writes names and texts, by a ``KeyValueEncoder``.
struct KeyValueBody: BodyEncoder {
    /// Where they go.
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
    /// Names and texts in the URL's query, by a ``KeyValueEncoder``, sorted by name; no content, whatever the method.
    public static let urlQuery = InputFormat(name: "urlQuery", encoder: KeyValueBody(place: .query))

    /// Names and texts in the content, as `application/x-www-form-urlencoded`, by a ``KeyValueEncoder``.
    public static let formURLEncoded = InputFormat(name: "formURLEncoded", encoder: KeyValueBody(place: .form))

    /// Parts of a form, as `multipart/form-data` (RFC 7578), by a ``KeyValueEncoder``; every ``File`` is a part of its own, with
    /// its name and its type.
    public static let formData = InputFormat(name: "formData", encoder: KeyValueBody(place: .multipartForm))
}

extension EndpointCoding {
    /// Sets up what makes names and texts of values.
    public func configure(_ encoder: inout KeyValueEncoder) throws {
        try service.configure(&encoder, for: endpoint)
        try endpoint.configure(&encoder)
    }
}

extension KeyValueEncoder {
    /// The value as a form of parts, in its own order: each ``File`` in it a part with a file name, the rest fields of text; null
    /// is a field with no text.
    ///
    /// - Throws: as ``pairs(of:)``.
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
