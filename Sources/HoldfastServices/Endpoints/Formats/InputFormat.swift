// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// How the input of endpoints is encoded; make other formats with a ``BodyEncoder``.
public struct InputFormat: Sendable, CustomStringConvertible {
    /// The name of the format, used in errors.
    public let name: String
    /// Whether the input may be a single number, boolean or date.
    public let takesScalars: Bool
    let encoder: any BodyEncoder

    /// Creates a format.
    ///
    /// - Parameters:
    ///   - name: the name, used in errors.
    ///   - takesScalars: whether the input may be a single number, boolean or date; false by default.
    ///   - encoder: encodes the input.
    public init(name: String, takesScalars: Bool = false, encoder: any BodyEncoder) {
        self.name = name
        self.takesScalars = takesScalars
        self.encoder = encoder
    }

    /// JSON (RFC 8259) in the content, with sorted keys, so that equal input is equal content in every process.
    public static let JSON = InputFormat(name: "JSON", takesScalars: true, encoder: JSONBody())

    public var description: String { name }
}

/// Encodes the input of endpoints in one format.
public protocol BodyEncoder: Sendable {
    /// Encodes the input; called once for each call.
    ///
    /// - Parameters:
    ///   - input: the values; never `Data` or `String`, which are sent unchanged.
    ///   - coding: the endpoint and service, for setting up encoders.
    func encode<Input: Encodable>(_ input: Input, _ coding: EndpointCoding) throws -> EncodedInput
}

/// Encoded input: in the query, in the content, or both.
public struct EncodedInput: Sendable {
    /// What to add to the URL's query.
    public var query: HttpQuery
    /// The content, with its type.
    public var body: HttpBody

    /// Creates encoded input; empty by default.
    public init(query: HttpQuery = HttpQuery(), body: HttpBody = .empty) {
        self.query = query
        self.body = body
    }
}
