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

        /// A field; an array is sent as several fields of one name, nil as none.
        public static func field(_ name: String, _ value: (any QueryArgumentConvertible)?) -> Part {
            let value = value?.queryArgument ?? .undefined
            return Part(name: name, fileName: nil, contentType: nil, content: .values(value))
        }

        /// Bytes in memory; a file to the server where they have a file name.
        public static func data(
            _ name: String,
            _ data: Data,
            fileName: String? = nil,
            contentType: String = "application/octet-stream"
        ) -> Part {
            let bytes = ByteChunk(copying: data)
            return Part(name: name, fileName: fileName, contentType: contentType, content: .bytes(bytes))
        }

        /// A file on disk, under its own name or another, read in chunks when it is sent.
        public static func file(
            _ name: String,
            at url: URL,
            fileName: String? = nil,
            contentType: String = "application/octet-stream"
        ) -> Part {
            let fileName = fileName ?? url.lastPathComponent
            return Part(name: name, fileName: fileName, contentType: contentType, content: .file(url))
        }

        /// Bytes from a stream, which is made anew for each attempt; the length if known, and then it must be right.
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

    /// The fields and files in the order in which they are sent.
    public var parts: [Part]

    /// A form of these parts.
    public init(_ parts: [Part] = []) {
        self.parts = parts
    }

    public init(arrayLiteral parts: Part...) {
        self.parts = parts
    }

    /// The content and its type.
    ///
    /// The boundary is 32 letters and digits drawn from `generator`, some 190 bits: data of n bytes contain it by chance with a
    /// probability below n / 2^190, and nobody can know it beforehand, so data are not searched for it. Names are escaped as
    /// browsers do it, `"` as %22 and line ends as %0D and %0A (WHATWG HTML §4.10.21.8), and are UTF-8 otherwise. Values are
    /// sent as they are. A form without parts is its closing line.
    ///
    /// Each file is looked at now, and has to be the same, unchanged, when an attempt reads it: a file that vanished, was
    /// replaced, grew or shrank makes the attempt fail, and never a shorter content pass for the whole.
    ///
    /// - Parameter generator: of good randomness outside tests.
    /// - Throws: `ServiceError` `.badRequest` where a file is not there, or where a content type is more than visible ASCII
    ///   on one line.
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
