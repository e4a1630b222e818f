// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation
public import Holdfast
internal import HoldfastStorage

/// Fields and files, as a form with `enctype="multipart/form-data"` sends them (RFC 7578).
///
/// ```swift
/// let form: MultipartForm = [.field("title", "Sea"), .file("photo", at: url, contentType: "image/jpeg")]
/// ```
public struct MultipartForm: Sendable, ExpressibleByArrayLiteral {
    /// One field or file.
    public struct Part: Sendable {
        enum Content: Sendable {
            case bytes(ByteChunk)
            case values(QueryArgument)
            case file(URL)
            case stream(length: Int?, @Sendable () async throws -> any ByteSource)
        }

        let name: String
        let fileName: String?
        let contentType: String?
        let content: Content

        /// A field; an array is sent as several fields with the same name, nil as none.
        public static func field(_ name: String, _ value: (any QueryArgumentConvertible)?) -> Part {
            let value = value?.queryArgument ?? .undefined
            return Part(name: name, fileName: nil, contentType: nil, content: .values(value))
        }

        /// Bytes in memory; sent as a file if they have a file name.
        public static func data(
            _ name: String,
            _ data: Data,
            fileName: String? = nil,
            contentType: String = "application/octet-stream"
        ) -> Part {
            let bytes = ByteChunk(copying: data)
            return Part(name: name, fileName: fileName, contentType: contentType, content: .bytes(bytes))
        }

        /// A file on disk, with its own name or another, read in chunks when it is sent.
        public static func file(
            _ name: String,
            at url: URL,
            fileName: String? = nil,
            contentType: String = "application/octet-stream"
        ) -> Part {
            let fileName = fileName ?? url.lastPathComponent
            return Part(name: name, fileName: fileName, contentType: contentType, content: .file(url))
        }

        /// Bytes from a stream, which is created again for each attempt; the length if known, which must then be right.
        public static func stream(
            _ name: String,
            length: Int? = nil,
            fileName: String? = nil,
            contentType: String = "application/octet-stream",
            _ make: @escaping @Sendable () async throws -> any ByteSource
        ) -> Part {
            let content = Content.stream(length: length, make)
            return Part(name: name, fileName: fileName, contentType: contentType, content: content)
        }
    }

    /// The fields and files in the order they are sent.
    public var parts: [Part]

    /// Creates a form with these parts.
    public init(_ parts: [Part] = []) {
        self.parts = parts
    }

    public init(arrayLiteral parts: Part...) {
        self.parts = parts
    }

    /// The content and its type.
    ///
    /// The boundary is 32 letters and digits drawn from `generator`, about 190 bits. Data of n bytes contain it by chance with
    /// a probability below n / 2^190, and nobody can know it in advance, so the data are not searched for it. Names are escaped
    /// as browsers do it, `"` as %22 and line ends as %0D and %0A (WHATWG HTML §4.10.21.8), and are otherwise UTF-8. Values are
    /// sent unchanged. A form without parts is only its closing line.
    ///
    /// Each file is checked now, and must be unchanged when an attempt reads it. If it was removed, replaced or changed in
    /// size, the attempt fails; a part of a file is never sent as the whole.
    ///
    /// - Parameter generator: must have good randomness, except in tests.
    /// - Throws: `ServiceError` `.badRequest` if a file does not exist, or if a content type is not visible ASCII on one line.
    public func encoded(using generator: inout some RandomNumberGenerator) throws -> HttpBody.Encoded {
        let letters = Array("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
        let drawn = (0..<32).map { _ in letters[Int.random(in: 0..<letters.count, using: &generator)] }
        let boundary = "holdfast-" + String(drawn)
        var writer = MultipartWriter(boundary: boundary)
        for part in parts { try writer.append(part) }
        return HttpBody.Encoded(
            contentType: "multipart/form-data; boundary=\(boundary)",
            content: writer.finished()
        )
    }
}
