// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The Content-Range field in bytes: where a part stands in the whole (RFC 9110 §14.4).
public struct ContentRange: Sendable, Hashable, CustomStringConvertible {
    /// The positions of the part, never empty; nil in a 416, which has none.
    public let interval: Range<Int64>?

    /// The length of the whole; nil where the sender did not know it.
    public let completeLength: Int64?

    /// Describes a part.
    ///
    /// - Parameters:
    ///   - interval: its positions; nil when empty, negative, or beyond the whole.
    ///   - completeLength: the length of the whole, or nil when it is not known.
    public init?(_ interval: Range<Int64>, completeLength: Int64?) {
        guard !interval.isEmpty, interval.lowerBound >= 0, interval.upperBound <= ByteRange.limit,
            completeLength.map({ interval.upperBound <= $0 && $0 <= ByteRange.limit }) ?? true
        else { return nil }
        self.interval = interval
        self.completeLength = completeLength
    }

    /// Describes the whole to a request that asked for nothing of it, as a 416 does.
    ///
    /// - Parameter completeLength: the length of the whole; negative counts as 0.
    public init(unsatisfiedOf completeLength: Int64) {
        interval = nil
        self.completeLength = max(0, completeLength)
    }

    /// Reads the Content-Range of a response; nil when it is absent, repeated or invalid.
    public init?(_ fields: HeaderFields) {
        let values = fields.values(of: .contentRange)
        guard values.count == 1, let value = values.first else { return nil }
        self.init(parsing: value)
    }

    /// Reads a field value: `bytes 0-499/1234`, `bytes 0-499/*` or `bytes */1234`.
    ///
    /// - Parameter value: any text; linear time. Nil for other units, anything malformed, numbers beyond
    ///   ``ByteRange/limit``, a last position before the first, and one that is not within the whole.
    public init?(parsing value: String) {
        var scanner = FieldScanner(value)
        guard scanner.token()?.loweringASCII() == "bytes", scanner.consume(UInt8(ascii: " ")) else { return nil }
        scanner.skipWhitespace()
        let positions = scanner.text(upTo: UInt8(ascii: "/"))
        let rest = scanner.text(upTo: UInt8(ascii: "/"))
        guard scanner.isAtEnd, !rest.isEmpty, value.utf8.last != UInt8(ascii: "/") else { return nil }
        let completeLength = ContentRange.number(rest)
        if positions == "*" {
            guard let completeLength else { return nil }
            self.init(unsatisfiedOf: completeLength)
            return
        }
        guard completeLength != nil || rest == "*", !positions.utf8.contains(where: \.isOptionalWhitespace),
            case .bounded(let first, let last) = ByteRange(positions)
        else { return nil }
        self.init(first..<(last + 1), completeLength: completeLength)
    }

    /// The field value.
    public var description: String {
        let length = completeLength.map { String($0) } ?? "*"
        guard let interval else { return "bytes */\(length)" }
        return "bytes \(interval.lowerBound)-\(interval.upperBound - 1)/\(length)"
    }

    /// A number that was cut down is none: it would place the part where it does not belong.
    private static func number(_ text: String) -> Int64? {
        FieldScanner.number(text.utf8, limit: ByteRange.limit).flatMap { $0 < ByteRange.limit ? $0 : nil }
    }
}
