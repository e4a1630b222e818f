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

    /// The name the server is told.
    public let name: String
    /// What the file is, as a media type.
    public let type: String
    let content: Content

    /// A file of bytes in memory.
    ///
    /// - Parameters:
    ///   - name: the name the server is told.
    ///   - content: the bytes.
    ///   - type: a media type; `application/octet-stream` by default.
    public init(name: String, content: Data, type: String = "application/octet-stream") {
        self.name = name
        self.type = type
        self.content = .data(content)
    }

    /// A file on disk, read in chunks while it is sent, anew by each attempt; it must not change while the call lasts.
    ///
    /// - Parameters:
    ///   - url: where it is.
    ///   - name: the name the server is told; the file's own by default.
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
                debugDescription: "A File is sent by the input format .formData; send its bytes as Data by the others."
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
