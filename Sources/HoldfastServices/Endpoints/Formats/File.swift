// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation

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
        case .data(let data): .data(field, data, fileName: name, contentType: type)
        case .url(let url): .file(field, at: url, fileName: name, contentType: type)
        }
    }
}
