// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Reads a received multipart/byteranges content piece by piece (RFC 9110 §14.6).
///
/// A part's Content-Range tells its length, so its bytes are counted and never searched; what stands between parts is
/// bounded. Costs linear time, however the bytes are cut.
package struct MultipartReader: Sendable {
    /// What the bytes read so far say.
    package enum Event: Sendable, Hashable {
        /// A part begins; its bytes follow.
        case part(ContentRange, contentType: String?)
        /// The next bytes of the current part.
        case bytes(ArraySlice<UInt8>)
    }

    /// The most bytes that may stand before, between and behind parts, each time.
    package static let maximumFraming = 16_384

    /// Whether the closing boundary came; what follows it is ignored.
    package private(set) var isFinished = false

    /// Whether the content broke the rules: then the parts that came whole count, and nothing after them.
    package private(set) var isInvalid = false

    private enum Stage: Sendable {
        case preamble
        case head(HeaderFields)
        case content(remaining: Int64)
        case endOfContent
        case boundary
    }

    private let delimiter: [UInt8]
    private var stage = Stage.preamble
    private var line: [UInt8] = []
    private var framing = 0
    private var parts = 0
    private var completeLength: Int64?

    /// Prepares to read a response's content.
    ///
    /// - Parameter fields: the response's fields; nil when they do not say multipart/byteranges with a valid boundary.
    package init?(_ fields: HeaderFields) {
        let values = fields.values(of: .contentType)
        guard values.count == 1, MultipartByteRanges.isContent(of: fields), let value = values.first else { return nil }
        let boundary = FieldScanner.members(of: value, separator: UInt8(ascii: ";")).dropFirst().lazy
            .compactMap(MultipartReader.boundary).first
        guard let boundary else { return nil }
        delimiter = Array("--\(boundary)".utf8)
    }

    /// Reads the next bytes.
    ///
    /// - Parameter chunk: the bytes as they came, cut anywhere.
    /// - Returns: what they say, in order; nothing once the content is finished or invalid.
    package mutating func read(_ chunk: [UInt8]) -> [Event] {
        var events: [Event] = []
        var rest = chunk[...]
        while !rest.isEmpty, !isFinished, !isInvalid {
            if case .content(let remaining) = stage {
                let bytes = rest.prefix(Int(clamping: remaining))
                events.append(.bytes(bytes))
                rest = rest.dropFirst(bytes.count)
                let left = remaining - Int64(bytes.count)
                stage = left > 0 ? .content(remaining: left) : .endOfContent
                continue
            }
            let end = rest.firstIndex(of: UInt8(ascii: "\n")) ?? rest.endIndex
            line += rest[..<end]
            framing += end - rest.startIndex + (end < rest.endIndex ? 1 : 0)
            if framing > MultipartReader.maximumFraming { isInvalid = true }
            guard end < rest.endIndex else { break }
            rest = rest[(end + 1)...]
            if line.last == UInt8(ascii: "\r") { line.removeLast() }
            if !isInvalid, let event = endLine() { events.append(event) }
            line = []
        }
        // The closing boundary may be the last thing sent, without an end of line.
        if case .boundary = stage, line == delimiter + Array("--".utf8) { isFinished = true }
        return events
    }

    private mutating func endLine() -> Event? {
        switch stage {
        case .preamble:
            if isDelimiter { stage = .head(HeaderFields()) }
        case .head(var fields):
            if line.isEmpty { return beginPart(fields) }
            var scanner = FieldScanner(String(decoding: line, as: UTF8.self))
            let name = scanner.token()
            guard let name, scanner.consume(UInt8(ascii: ":")) else {
                isInvalid = true
                break
            }
            fields.append(rawName: name, value: String(decoding: line[scanner.position...], as: UTF8.self))
            stage = .head(fields)
        case .endOfContent:
            isInvalid = !line.isEmpty
            stage = .boundary
        case .boundary:
            if isDelimiter {
                stage = .head(HeaderFields())
            } else {
                isFinished = line.starts(with: delimiter + Array("--".utf8))
                isInvalid = !isFinished
            }
        case .content:
            break
        }
        return nil
    }

    private mutating func beginPart(_ fields: HeaderFields) -> Event? {
        guard let range = ContentRange(fields), let interval = range.interval, parts < RangeRequest.maximumRanges,
            parts == 0 || range.completeLength == completeLength
        else {
            isInvalid = true
            return nil
        }
        parts += 1
        framing = 0
        completeLength = range.completeLength
        stage = .content(remaining: interval.upperBound - interval.lowerBound)
        return .part(range, contentType: fields[.contentType])
    }

    /// Whether the line is the delimiter, white space behind it allowed (RFC 2046 §5.1.1).
    private var isDelimiter: Bool {
        line.starts(with: delimiter) && line.dropFirst(delimiter.count).allSatisfy(\.isOptionalWhitespace)
    }

    private static func boundary(_ parameter: String) -> String? {
        var scanner = FieldScanner(parameter)
        guard scanner.token()?.loweringASCII() == "boundary", scanner.consume(UInt8(ascii: "=")) else { return nil }
        let value = scanner.quotedString() ?? scanner.token()
        // No longer than RFC 2046 §5.1.1 allows, and no end of line within.
        guard let value, scanner.isAtEnd, !value.isEmpty, value.utf8.count <= 70,
            value.utf8.allSatisfy({ $0 >= 0x20 && $0 < 0x7F }), value.utf8.last != UInt8(ascii: " ")
        else { return nil }
        return value
    }
}
