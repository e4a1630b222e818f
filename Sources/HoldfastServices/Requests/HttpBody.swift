// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation
public import Holdfast

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// The content of a request, made when the request is built.
public struct HttpBody: Sendable {
    /// Content as it is sent.
    public struct Encoded: Sendable {
        /// The content's media type; nil: not stated.
        public var contentType: String?
        /// The bytes, or their source.
        public var content: RequestBody

        /// Content of a type.
        public init(contentType: String?, content: RequestBody) {
            self.contentType = contentType
            self.content = content
        }
    }

    /// Makes the content; called once for each call, and again by a ``CallLogger`` among the request hooks if the call fails or
    /// the content is not in memory.
    public let encode: @Sendable () throws -> Encoded

    /// A custom body.
    public init(_ encode: @escaping @Sendable () throws -> Encoded) { self.encode = encode }

    /// No content and no content type.
    public static let empty = HttpBody { Encoded(contentType: nil, content: .none) }
}

extension HttpBody {
    /// Bytes.
    public static func data(_ data: Data, contentType: String = "application/octet-stream") -> HttpBody {
        HttpBody { Encoded(contentType: contentType, content: .data(data)) }
    }

    /// Text, sent as UTF-8.
    public static func text(_ text: String, contentType: String = "text/plain; charset=utf-8") -> HttpBody {
        HttpBody { Encoded(contentType: contentType, content: .bytes(ByteChunk(copying: text.utf8))) }
    }

    /// A value as JSON, written by ``ServiceJSON``: dates in milliseconds since 1970, keys in order.
    ///
    /// - Parameters:
    ///   - value: encoded when the request is built.
    ///   - keys: how keys are written; `.convertToSnakeCase` for servers that need it.
    public static func json(
        _ value: some Encodable & Sendable,
        keys: JSONEncoder.KeyEncodingStrategy = .useDefaultKeys
    ) -> HttpBody {
        json(value, encoder: ServiceJSON.encoder(keys: keys))
    }

    /// A value as JSON, written by your own encoder, which must not change afterwards.
    public static func json(_ value: some Encodable & Sendable, encoder: JSONEncoder) -> HttpBody {
        HttpBody { Encoded(contentType: "application/json", content: .data(try encoder.encode(value))) }
    }

    /// An image that is already encoded.
    public static func image(_ data: Data, format: ImageFormat) -> HttpBody {
        .data(data, contentType: format.contentType)
    }

    /// A file, read again for each attempt; it must not change during the call.
    ///
    /// If the file cannot be read, the call fails with `ServiceError` `.badRequest` before anything is sent.
    public static func file(_ url: URL, contentType: String = "application/octet-stream") -> HttpBody {
        HttpBody {
            _ = try FileSnapshot(of: url)
            return Encoded(contentType: contentType, content: .file(url))
        }
    }

    /// Arguments as an HTML form sends them, sorted as in a URL (application/x-www-form-urlencoded, WHATWG URL §5).
    public static func formURLEncoded(_ arguments: HttpQuery, notation: FormNotation = FormNotation()) -> HttpBody {
        formURLEncoded(items: arguments.items, notation: notation)
    }

    /// Arguments as an HTML form sends them, in this order.
    public static func formURLEncoded(items: [HttpQuery.Item], notation: FormNotation = FormNotation()) -> HttpBody {
        HttpBody {
            _ = try HttpQuery(items: items).namedItems
            let text = items.flatMap { notation.pairs($0) }.map { pair in
                PercentCoding.encode(pair.name, allowing: .form) + "="
                    + PercentCoding.encode(pair.value, allowing: .form)
            }.joined(separator: "&")
            return Encoded(
                contentType: "application/x-www-form-urlencoded; charset=utf-8",
                content: .bytes(ByteChunk(copying: text.utf8))
            )
        }
    }

    /// Fields and files (multipart/form-data, RFC 7578), with a new random boundary for each call.
    ///
    /// Files are read in chunks when the content is sent, again for each attempt. If all lengths are known, so is that of the
    /// whole. See ``MultipartForm/encoded(using:)`` for what can go wrong.
    public static func multipart(_ form: MultipartForm) -> HttpBody {
        HttpBody {
            var generator = SystemRandomNumberGenerator()
            return try form.encoded(using: &generator)
        }
    }
}

/// How a form writes arrays and Booleans, on which servers differ.
public struct FormNotation: Sendable, Hashable {
    /// How the values of an array are named.
    public var arrays: KeyValueEncoder.ArrayNaming
    /// How Booleans are written.
    public var booleans: KeyValueEncoder.BooleanFormat

    /// A notation; by default that of a query.
    public init(arrays: KeyValueEncoder.ArrayNaming = .repeated, booleans: KeyValueEncoder.BooleanFormat = .words) {
        self.arrays = arrays
        self.booleans = booleans
    }

    /// The pairs that an argument is sent as, before percent-encoding.
    func pairs(_ item: HttpQuery.Item) -> [(name: String, value: String)] {
        let isArray = if case .array = item.value { true } else { false }
        return item.value.leaves.enumerated().map { index, value in
            let name = isArray ? arrays.name(of: index, in: item.name) : item.name
            if case .boolean(let value) = value { return (name, booleans.text(of: value)) }
            return (name, value.text)
        }
    }
}

/// The format of an image, by its media type.
public struct ImageFormat: Sendable, Hashable {
    /// The media type, such as `image/png`.
    public let contentType: String

    /// A format of this media type.
    public init(contentType: String) { self.contentType = contentType }

    /// PNG.
    public static let png = ImageFormat(contentType: "image/png")
    /// JPEG.
    public static let jpeg = ImageFormat(contentType: "image/jpeg")
    /// GIF.
    public static let gif = ImageFormat(contentType: "image/gif")
    /// WebP.
    public static let webP = ImageFormat(contentType: "image/webp")
    /// HEIC.
    public static let heic = ImageFormat(contentType: "image/heic")
    /// AVIF.
    public static let avif = ImageFormat(contentType: "image/avif")
    /// SVG.
    public static let svg = ImageFormat(contentType: "image/svg+xml")
}
