// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import Holdfast
internal import HoldfastStorage

/// Writes the parts of a form, one after the other (RFC 2046 §5.1.1).
struct MultipartWriter {
    /// A part of the content.
    enum Section: Sendable {
        case bytes(ByteChunk)
        case file(FileSnapshot)
        case stream(length: Int?, @Sendable () async throws -> any ByteSource)

        /// The length in bytes if known.
        var length: Int? {
            switch self {
            case .bytes(let bytes): bytes.count
            case .file(let snapshot): snapshot.size
            case .stream(let length, _): length
            }
        }
    }

    /// Bytes up to this length are copied, to join several small pieces into one chunk.
    private static let shortest = 16 << 10
    private let boundary: String
    private var sections: [Section] = []
    private var pending: [UInt8] = []

    init(boundary: String) {
        self.boundary = boundary
    }

    mutating func append(_ part: MultipartForm.Part) throws {
        switch part.content {
        case .values(let argument):
            for value in argument.values { try append(part, content: .bytes(ByteChunk(copying: value.utf8))) }
        case .bytes(let bytes):
            try append(part, content: .bytes(bytes))
        case .file(let url):
            try append(part, content: .file(try FileSnapshot(of: url)))
        case .stream(let length, let make):
            try append(part, content: .stream(length: length, make))
        }
    }

    /// The whole content, with its closing line: bytes if all of it is in memory.
    mutating func finished() -> RequestBody {
        pending += Array("--\(boundary)--\r\n".utf8)
        flush()
        if sections.allSatisfy({ if case .bytes = $0 { true } else { false } }) {
            var all: [UInt8] = []
            for case .bytes(let bytes) in sections { bytes.append(to: &all) }
            return .bytes(ByteChunk(all))
        }
        let length = sections.reduce(0 as Int?) { sum, section in
            guard let sum, let length = section.length else { return nil }
            let (total, isTooLong) = sum.addingReportingOverflow(length)
            return isTooLong ? nil : total
        }
        return .factory(length: length) { [sections] in MultipartSource(sections) }
    }

    private mutating func append(_ part: MultipartForm.Part, content: Section) throws {
        var head = "--\(boundary)\r\nContent-Disposition: form-data; name=\"\(escaped(part.name))\""
        if let fileName = part.fileName { head += "; filename=\"\(escaped(fileName))\"" }
        head += "\r\n"
        if let contentType = part.contentType {
            guard contentType.utf8.allSatisfy({ (0x20...0x7E).contains($0) }) else {
                throw ServiceError(
                    .badRequest,
                    "The content type of a form's part contains characters other than visible ASCII. "
                        + "Use a media type such as image/png.",
                    progress: .notSent
                )
            }
            head += "Content-Type: \(contentType)\r\n"
        }
        pending += Array("\(head)\r\n".utf8)
        if case .bytes(let bytes) = content, bytes.count <= MultipartWriter.shortest {
            bytes.append(to: &pending)
        } else {
            flush()
            sections.append(content)
        }
        pending += Array("\r\n".utf8)
    }

    private mutating func flush() {
        sections.append(.bytes(ByteChunk(pending)))
        pending = []
    }

    private func escaped(_ name: String) -> String {
        var escaped = String.UnicodeScalarView()
        for scalar in name.unicodeScalars {
            switch scalar {
            case "\"": escaped.append(contentsOf: "%22".unicodeScalars)
            case "\r": escaped.append(contentsOf: "%0D".unicodeScalars)
            case "\n": escaped.append(contentsOf: "%0A".unicodeScalars)
            default: escaped.append(scalar)
            }
        }
        return String(escaped)
    }
}
