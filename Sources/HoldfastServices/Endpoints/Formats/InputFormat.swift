// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// How the input of endpoints is written; further ones are made of a ``BodyEncoder``.
public struct InputFormat: Sendable, CustomStringConvertible {
    /// What the format is called, in errors.
    public let name: String
    /// Whether input may be a bare number, truth value or date.
    public let takesScalars: Bool
    let encoder: any BodyEncoder

    /// A format.
    ///
    /// - Parameters:
    ///   - name: what it is called.
    ///   - takesScalars: whether input may be a bare number, truth value or date; false by default.
    ///   - encoder: what writes.
    public init(name: String, takesScalars: Bool = false, encoder: any BodyEncoder) {
        self.name = name
        self.takesScalars = takesScalars
        self.encoder = encoder
    }

    /// JSON (RFC 8259) in the content, keys sorted, so that equal input is equal content in every process.
    public static let JSON = InputFormat(name: "JSON", takesScalars: true, encoder: JSONBody())

    public var description: String { name }
}

/// Writes the input of endpoints in a format.
public protocol BodyEncoder: Sendable {
    /// Makes input ready to be sent; called once for each call.
    ///
    /// - Parameters:
    ///   - input: the values; never `Data` or `String`, which go out as they are.
    ///   - coding: who asks, to have encoders set up.
    func encode<Input: Encodable>(_ input: Input, _ coding: EndpointCoding) throws -> EncodedInput
}

/// Input as it is to be sent: in the query, in the content, or both.
public struct EncodedInput: Sendable {
    /// What is added to the URL's query.
    public var query: HttpQuery
    /// The content, with its type.
    public var body: HttpBody

    /// Nothing, but for what is given.
    public init(query: HttpQuery = HttpQuery(), body: HttpBody = .empty) {
        self.query = query
        self.body = body
    }
}
