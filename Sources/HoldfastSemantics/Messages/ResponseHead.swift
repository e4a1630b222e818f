// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// What the rules need to know of a response: everything but its content.
public struct ResponseHead: Sendable, Hashable {
    /// The status code.
    public var status: StatusCode

    /// The header fields in order, without trailers.
    public var fields: HeaderFields

    /// Creates a head from its parts.
    ///
    /// - Parameters:
    ///   - status: any number.
    ///   - fields: none by default.
    public init(status: StatusCode, fields: HeaderFields = HeaderFields()) {
        self.status = status
        self.fields = fields
    }

    /// When the origin created the response, by its Date field (RFC 9110 §6.6.1).
    ///
    /// A missing, repeated or malformed field gives nil; then use the time of receipt.
    ///
    /// - Parameter receivedAt: when the response arrived, for two-digit years.
    /// - Returns: the date, or nil.
    public func date(receivedAt: Timestamp) -> HTTPDate? {
        ResponseHead.date(of: .date, in: fields, receivedAt: receivedAt)
    }

    /// The length of its content by Content-Length; nil if missing, malformed or contradictory (RFC 9110 §8.6).
    public var contentLength: Int? {
        let lines = Set(fields.values(of: .contentLength))
        guard lines.count == 1, let line = lines.first else { return nil }
        return FieldScanner.number(line.utf8, limit: Int64(Int.max)).flatMap { Int(exactly: $0) }
    }

    /// The Age field in seconds (RFC 9111 §5.1).
    ///
    /// Only the first member of the first line counts; anything but digits counts as no field.
    public var age: Int64? {
        guard let line = fields.first(where: { $0.name == .age }) else { return nil }
        var scanner = FieldScanner(line.value)
        let member = scanner.text(upTo: UInt8(ascii: ","))
        return FieldScanner.number(member.utf8, limit: CacheControl.maximumDeltaSeconds)
    }

    /// The date in a field that must not be repeated; nil if it is missing, malformed or repeated.
    package static func date(of name: FieldName, in fields: HeaderFields, receivedAt: Timestamp) -> HTTPDate? {
        var found: String?
        for line in fields where line.name == name {
            guard found == nil else { return nil }
            found = line.value
        }
        return found.flatMap { HTTPDate($0, receivedAt: receivedAt) }
    }
}
