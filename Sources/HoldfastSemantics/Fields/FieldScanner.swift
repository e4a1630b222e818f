// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// A scanner for the bytes of a field value: tokens, quoted strings, lists and parameters (RFC 9110 §5.6).
///
/// One pass, with no backtracking beyond one quoted string, so a hostile value costs linear time. A quote that is never closed
/// counts as an ordinary character, so that everything after it is still read.
package struct FieldScanner {
    private let bytes: [UInt8]
    private(set) package var position = 0
    private var hasUnclosedQuote = false

    package init(_ text: String) { bytes = Array(text.utf8) }

    package var isAtEnd: Bool { position >= bytes.count }

    package var peek: UInt8? { position < bytes.count ? bytes[position] : nil }

    package mutating func skipWhitespace() {
        while let byte = peek, byte.isOptionalWhitespace { position += 1 }
    }

    package mutating func consume(_ byte: UInt8) -> Bool {
        guard peek == byte else { return false }
        position += 1
        return true
    }

    /// The token at the position, or nil if none starts there.
    package mutating func token() -> String? {
        let start = position
        while let byte = peek, byte.isTokenCharacter { position += 1 }
        return start == position ? nil : String(decoding: bytes[start..<position], as: UTF8.self)
    }

    /// The content of the quoted string at the position without its escapes, or nil if there is no complete one.
    package mutating func quotedString() -> String? {
        guard peek == UInt8(ascii: "\""), let end = endOfQuotedString() else { return nil }
        var content: [UInt8] = []
        var index = position + 1
        while index < end - 1 {
            if bytes[index] == UInt8(ascii: "\\") { index += 1 }
            content.append(bytes[index])
            index += 1
        }
        position = end
        return String(decoding: content, as: UTF8.self)
    }

    /// The text up to the next `separator` outside quotes, trimmed; consumes the separator.
    package mutating func text(upTo separator: UInt8) -> String {
        let start = position
        while let byte = peek, byte != separator {
            if byte == UInt8(ascii: "\""), let end = endOfQuotedString() {
                position = end
            } else {
                position += 1
            }
        }
        var low = start
        var high = position
        position = min(position + 1, bytes.count)
        while low < high, bytes[low].isOptionalWhitespace { low += 1 }
        while high > low, bytes[high - 1].isOptionalWhitespace { high -= 1 }
        return String(decoding: bytes[low..<high], as: UTF8.self)
    }

    /// The members of a comma-separated list, respecting quoted strings, without empty members (RFC 9110 §5.6.1).
    package static func members(of value: String, separator: UInt8 = UInt8(ascii: ",")) -> [String] {
        var scanner = FieldScanner(value)
        var members: [String] = []
        while !scanner.isAtEnd {
            let member = scanner.text(upTo: separator)
            if !member.isEmpty { members.append(member) }
        }
        return members
    }

    /// The decimal number that is the whole text, limited to `limit`; nil for anything but digits.
    package static func number(_ text: some Collection<UInt8>, limit: Int64) -> Int64? {
        guard !text.isEmpty else { return nil }
        var value: Int64 = 0
        for byte in text {
            guard byte.isDigit else { return nil }
            let (product, overflow) = value.multipliedReportingOverflow(by: 10)
            let (sum, carry) = product.addingReportingOverflow(Int64(byte - UInt8(ascii: "0")))
            value = overflow || carry ? limit : min(sum, limit)
        }
        return value
    }

    /// The position after the closing quote. After an unclosed quote no later one can be closed either; remembering this keeps the
    /// whole scan linear.
    private mutating func endOfQuotedString() -> Int? {
        guard !hasUnclosedQuote else { return nil }
        var index = position + 1
        while index < bytes.count {
            switch bytes[index] {
            case UInt8(ascii: "\\"): index += 2
            case UInt8(ascii: "\""): return index + 1
            default: index += 1
            }
        }
        hasUnclosedQuote = true
        return nil
    }
}
