// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The content of a 206 with several parts, as pieces to be sent one after another (RFC 9110 §14.6).
///
/// Nothing of the stored content is held or copied, so that plumbing can stream it; the length is known beforehand.
public struct MultipartByteRanges: Sendable, Hashable {
    /// A stretch of the content.
    public enum Piece: Sendable, Hashable {
        /// These very bytes.
        case literal([UInt8])
        /// The stored bytes at these positions.
        case stored(Range<Int64>)
    }

    /// The text between the parts, without its dashes.
    public let boundary: String

    /// The pieces in the order they are sent.
    public let pieces: [Piece]

    /// The length of all pieces together in bytes; saturates where 64 bits do not suffice.
    public let contentLength: Int64

    /// Frames parts of one content.
    ///
    /// - Parameters:
    ///   - intervals: the parts, in the order they are sent; empty or negative ones, and those beyond the whole, are
    ///     left out.
    ///   - completeLength: the length of the whole; nil when it is not known.
    ///   - contentType: the stored Content-Type, which each part repeats; nil when there is none.
    ///   - seed: what the boundary is made of; a random number, so that no content can hold it on purpose.
    public init(intervals: [Range<Int64>], completeLength: Int64?, contentType: String?, seed: UInt64) {
        let boundary = MultipartByteRanges.boundary(seed: seed)
        var pieces: [Piece] = []
        var length: Int64 = 0
        func add(_ count: Int64) {
            let (sum, overflow) = length.addingReportingOverflow(count)
            length = overflow ? .max : sum
        }
        for interval in intervals {
            guard let range = ContentRange(interval, completeLength: completeLength) else { continue }
            var lead = pieces.isEmpty ? "" : "\r\n"
            lead += "--\(boundary)\r\n"
            if let contentType { lead += HeaderFields.Line(name: .contentType, value: contentType).text }
            lead += HeaderFields.Line(name: .contentRange, value: range.description).text
            lead += "\r\n"
            let bytes = Array(lead.utf8)
            pieces += [.literal(bytes), .stored(interval)]
            add(Int64(bytes.count))
            add(interval.upperBound - interval.lowerBound)
        }
        let end = Array("\(pieces.isEmpty ? "" : "\r\n")--\(boundary)--\r\n".utf8)
        pieces.append(.literal(end))
        add(Int64(end.count))
        self.boundary = boundary
        self.pieces = pieces
        contentLength = length
    }

    /// The Content-Type of the whole message.
    public var contentType: String { "multipart/byteranges; boundary=\(boundary)" }

    /// Whether a response says that its content is framed like this.
    ///
    /// - Parameter fields: the response's fields.
    public static func isContent(of fields: HeaderFields) -> Bool {
        fields.values(of: .contentType).contains { value in
            var scanner = FieldScanner(value)
            return scanner.text(upTo: UInt8(ascii: ";")).loweringASCII() == "multipart/byteranges"
        }
    }

    /// Sixteen hexadecimal digits behind a name; well within the 70 characters a boundary may have (RFC 2046 §5.1.1).
    private static func boundary(seed: UInt64) -> String {
        let digits = String(seed, radix: 16)
        return "holdfast-" + String(repeating: "0", count: 16 - digits.utf8.count) + digits
    }
}

extension HeaderFields.Line {
    fileprivate var text: String { "\(name.rawName): \(value)\r\n" }
}
