// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// One member of a Range field in bytes (RFC 9110 §14.1.2).
///
/// Positions count from 0. Numbers too large for 64 bits are cut to ``limit``, which no content reaches.
public enum ByteRange: Sendable, Hashable {
    /// From the first position through the last one, both within; the last is never before the first.
    case bounded(first: Int64, last: Int64)
    /// From the first position to the end.
    case from(first: Int64)
    /// The last so many bytes.
    case suffix(length: Int64)

    /// The greatest number a range holds; one less than 64 bits allow, so that the position behind it exists.
    public static let limit = Int64.max - 1

    /// Reads one range-spec such as `0-499`, `500-` or `-500`.
    ///
    /// - Parameter text: the member without white space around it; nil when it is malformed or its last position comes
    ///   before its first. Costs linear time.
    public init?(_ text: String) {
        let bytes = Array(text.utf8)
        guard let dash = bytes.firstIndex(of: UInt8(ascii: "-")) else { return nil }
        let before = bytes[..<dash]
        let after = bytes[(dash + 1)...]
        if before.isEmpty {
            guard let length = FieldScanner.number(after, limit: ByteRange.limit) else { return nil }
            self = .suffix(length: length)
            return
        }
        guard let first = FieldScanner.number(before, limit: ByteRange.limit) else { return nil }
        if after.isEmpty {
            self = .from(first: first)
            return
        }
        guard let last = FieldScanner.number(after, limit: ByteRange.limit), last >= first else { return nil }
        self = .bounded(first: first, last: last)
    }

    /// The bytes meant, of content with a known length (RFC 9110 §14.1.2).
    ///
    /// - Parameter completeLength: the length of the whole; negative counts as 0.
    /// - Returns: a range that is not empty and lies within the whole; nil when nothing of it is there.
    public func resolved(completeLength: Int64) -> Range<Int64>? {
        let end = max(0, completeLength)
        switch self {
        case .bounded(let first, let last):
            guard first >= 0, first < end, last >= first else { return nil }
            return first..<(last < end ? last + 1 : end)
        case .from(let first):
            return first >= 0 && first < end ? first..<end : nil
        case .suffix(let length):
            return length > 0 && end > 0 ? (end - min(length, end))..<end : nil
        }
    }

    /// The bytes meant where the length of the whole is not known; nil unless both ends are given.
    public var bounds: Range<Int64>? {
        guard case .bounded(let first, let last) = self, first >= 0, last >= first, last <= ByteRange.limit else {
            return nil
        }
        return first..<(last + 1)
    }
}

extension ByteRange: CustomStringConvertible {
    /// The range as it stands in a Range field, without the unit.
    public var description: String {
        switch self {
        case .bounded(let first, let last): "\(first)-\(last)"
        case .from(let first): "\(first)-"
        case .suffix(let length): "-\(length)"
        }
    }
}
