// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation
internal import Holdfast

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
    func encode<Input: Encodable>(_ input: Input, for coding: EndpointCoding) throws -> EncodedInput
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

/// The endpoint and service that input is encoded or a response decoded for; sets up encoders and decoders, first by the
/// service and then by the endpoint.
public struct EndpointCoding: Sendable {
    /// The endpoint that is called.
    public let endpoint: any Endpoint
    /// The service it belongs to.
    public let service: any WebService

    /// Creates the coding for an endpoint of a service.
    public init(endpoint: any Endpoint, service: any WebService) {
        self.endpoint = endpoint
        self.service = service
    }

    /// Sets up the JSON encoder.
    public func configure(_ encoder: inout JSONEncoder) throws {
        try service.configure(&encoder, for: endpoint)
        try endpoint.configure(&encoder)
    }

    /// Sets up the JSON decoder.
    public func configure(_ decoder: inout JSONDecoder) throws {
        try service.configure(&decoder, for: endpoint)
        try endpoint.configure(&decoder)
    }
}

/// The input of an endpoint, before it is encoded.
struct EndpointInput: Sendable {
    let encode: @Sendable (_ coding: EndpointCoding) throws -> EncodedInput

    /// No input.
    static let nothing = EndpointInput { _ in EncodedInput() }

    /// Values; text and bytes are sent unchanged.
    static func values<Input: Encodable & Sendable>(_ input: Input, as format: InputFormat) -> EndpointInput {
        EndpointInput { coding in
            if let data = input as? Data { return EncodedInput(body: .data(data)) }
            if let text = input as? String {
                return EncodedInput(body: .data(Data(text.utf8), contentType: "text/plain; charset=utf-8"))
            }
            guard format.takesScalars || !isBareScalar(Input.self) else {
                throw ServiceError(
                    .encodingFailed,
                    "A bare \(Input.self) cannot be written as \(format): make the input a struct whose members have names, "
                        + "or send it as JSON.",
                    progress: .notSent
                )
            }
            return try ServiceError.encoding("\(Input.self) as \(format)") {
                do {
                    return try format.encoder.encode(input, for: coding)
                } catch {
                    throw withoutValue(error)
                }
            }
        }
    }

    /// The error without the value that could not be encoded, which may be a password.
    private static func withoutValue(_ error: any Error) -> any Error {
        guard case EncodingError.invalidValue(let value, let context) = error else { return error }
        return EncodingError.invalidValue(type(of: value), context)
    }
}

/// Encodes names and texts with a ``KeyValueEncoder``.
struct KeyValueBody: BodyEncoder {
    let make: @Sendable (_ encoder: KeyValueEncoder, _ input: any Encodable) throws -> EncodedInput

    func encode<Input: Encodable>(_ input: Input, for coding: EndpointCoding) throws -> EncodedInput {
        var encoder = KeyValueEncoder()
        try coding.configure(&encoder)
        return try make(encoder, input)
    }
}

extension InputFormat {
    /// Names and texts in the URL's query, from a ``KeyValueEncoder``, sorted by name; no content, whatever the method.
    public static let urlQuery = InputFormat(
        name: "urlQuery",
        encoder: KeyValueBody { EncodedInput(query: try $0.query(of: $1)) }
    )

    /// Names and texts in the content, as `application/x-www-form-urlencoded`, from a ``KeyValueEncoder``.
    public static let formURLEncoded = InputFormat(
        name: "formURLEncoded",
        encoder: KeyValueBody { EncodedInput(body: try $0.form(of: $1)) }
    )

    /// Parts of a form, as `multipart/form-data` (RFC 7578), from a ``KeyValueEncoder``; every ``File`` is a part with its own
    /// name and type.
    public static let formData = InputFormat(
        name: "formData",
        encoder: KeyValueBody { EncodedInput(body: .multipart(try $0.multipartForm(of: $1))) }
    )
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
            try KeyValueWriter(encoder: self).leaves(of: tree).map { leaf in
                if case .whole(let file as File) = leaf.content { return file.part(named: leaf.name) }
                return .field(leaf.name, value: leaf.pair?.value ?? "")
            }
        )
    }
}

/// A file among the values of an input, for ``InputFormat/formData``.
///
/// ```swift
/// struct Input: Encodable {
///     let title: String
///     let photo: File
/// }
/// ```
public struct File: Sendable, Hashable, Encodable {
    /// Where a file's bytes are.
    enum Content: Sendable, Hashable {
        case data(Data)
        case url(URL)
    }

    /// The file name to send.
    public let name: String
    /// The media type.
    public let type: String
    let content: Content

    /// Creates a file from bytes in memory.
    ///
    /// - Parameters:
    ///   - name: the file name to send.
    ///   - content: the bytes.
    ///   - type: a media type; `application/octet-stream` by default.
    public init(name: String, content: Data, type: String = "application/octet-stream") {
        self.name = name
        self.type = type
        self.content = .data(content)
    }

    /// Creates a file on disk that is read in chunks while it is sent, again for each attempt; it must not change during the
    /// call.
    ///
    /// - Parameters:
    ///   - url: the file's URL.
    ///   - name: the file name to send; the file's own by default.
    ///   - type: a media type; `application/octet-stream` by default.
    public init(at url: URL, name: String? = nil, type: String = "application/octet-stream") {
        self.name = name ?? url.lastPathComponent
        self.type = type
        content = .url(url)
    }

    /// Fails: only ``InputFormat/formData`` can send a file.
    public func encode(to encoder: any Encoder) throws {
        throw EncodingError.invalidValue(
            File.self,
            EncodingError.Context(
                codingPath: encoder.codingPath,
                debugDescription:
                    "Only the input format .formData can send a File. With other formats, send its bytes as Data."
            )
        )
    }

    func part(named field: String) -> MultipartForm.Part {
        switch content {
        case .data(let data): .data(field, bytes: data, fileName: name, contentType: type)
        case .url(let url): .file(field, at: url, fileName: name, contentType: type)
        }
    }
}

/// Whether values of a type have no parts, so that only JSON can represent them on their own.
func isBareScalar(_ type: Any.Type) -> Bool {
    switch type {
    case is any FixedWidthInteger.Type, is any BinaryFloatingPoint.Type: true
    case is Bool.Type, is Decimal.Type, is Date.Type, is URL.Type, is UUID.Type: true
    case let optional as any OptionalValue.Type: isBareScalar(optional.wrapped)
    default: false
    }
}

private protocol OptionalValue {
    static var wrapped: Any.Type { get }
}

extension Optional: OptionalValue {
    fileprivate static var wrapped: Any.Type { Wrapped.self }
}
