// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// A strict reader of the structured dictionary that No-Vary-Search is (RFC 9651 §4.2.2), in one pass.
///
/// Only booleans and inner lists of strings keep their value, since nothing else means anything there; all other items
/// are checked and read as `other`.
struct SearchVarianceParser {
    enum Value: Sendable, Equatable {
        case boolean(Bool)
        case string(String)
        case strings([String])
        case other
    }

    private let bytes: [UInt8]
    private var position = 0

    private init(_ text: String) {
        bytes = Array(text.utf8)
    }

    /// nil where the text is no dictionary; of two members with one key the later counts.
    static func dictionary(_ text: String) -> [String: Value]? {
        var parser = SearchVarianceParser(text)
        var members: [String: Value] = [:]
        parser.skipSpaces()
        while !parser.isAtEnd {
            guard let key = parser.key() else { return nil }
            var value = Value.boolean(true)
            if parser.consume(UInt8(ascii: "=")) {
                guard let read = parser.itemOrInnerList() else { return nil }
                value = read
            }
            guard parser.skipParameters() else { return nil }
            members[key] = value
            parser.skipWhitespace()
            if parser.isAtEnd { break }
            guard parser.consume(UInt8(ascii: ",")) else { return nil }
            parser.skipWhitespace()
            if parser.isAtEnd { return nil }
        }
        return members
    }

    private var isAtEnd: Bool { position >= bytes.count }

    private var peek: UInt8? { position < bytes.count ? bytes[position] : nil }

    private mutating func consume(_ byte: UInt8) -> Bool {
        guard peek == byte else { return false }
        position += 1
        return true
    }

    private mutating func skipSpaces() {
        while consume(UInt8(ascii: " ")) {}
    }

    private mutating func skipWhitespace() {
        while let byte = peek, byte.isOptionalWhitespace { position += 1 }
    }

    private mutating func take(while isPart: (UInt8) -> Bool) -> ArraySlice<UInt8> {
        let start = position
        while let byte = peek, isPart(byte) { position += 1 }
        return bytes[start..<position]
    }

    private mutating func key() -> String? {
        guard let first = peek, first.isLowerCaseLetter || first == UInt8(ascii: "*") else { return nil }
        let key = take { byte in
            byte.isLowerCaseLetter || byte.isDigit || "_-.*".utf8.contains(byte)
        }
        return String(decoding: key, as: UTF8.self)
    }

    private mutating func skipParameters() -> Bool {
        while consume(UInt8(ascii: ";")) {
            skipSpaces()
            guard key() != nil else { return false }
            if consume(UInt8(ascii: "=")), bareItem() == nil { return false }
        }
        return true
    }

    private mutating func itemOrInnerList() -> Value? {
        guard consume(UInt8(ascii: "(")) else { return bareItem() }
        var strings: [String] = []
        var isAllStrings = true
        while true {
            skipSpaces()
            if consume(UInt8(ascii: ")")) { return isAllStrings ? .strings(strings) : .other }
            guard let item = bareItem(), skipParameters(), peek == UInt8(ascii: " ") || peek == UInt8(ascii: ")")
            else { return nil }
            if case .string(let text) = item { strings.append(text) } else { isAllStrings = false }
        }
    }

    private mutating func bareItem() -> Value? {
        guard let first = peek else { return nil }
        switch first {
        case UInt8(ascii: "\""):
            position += 1
            return string().map(Value.string)
        case UInt8(ascii: "?"):
            position += 1
            if consume(UInt8(ascii: "1")) { return .boolean(true) }
            return consume(UInt8(ascii: "0")) ? .boolean(false) : nil
        case UInt8(ascii: ":"):
            position += 1
            _ = take { $0.isLetter || $0.isDigit || "+/=".utf8.contains($0) }
            return consume(UInt8(ascii: ":")) ? .other : nil
        case UInt8(ascii: "@"):
            position += 1
            return number(allowsFraction: false) ? .other : nil
        case UInt8(ascii: "%"):
            position += 1
            return consume(UInt8(ascii: "\"")) && displayString() ? .other : nil
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"):
            return number(allowsFraction: true) ? .other : nil
        default:
            guard first.isLetter || first == UInt8(ascii: "*") else { return nil }
            _ = take { $0.isTokenCharacter || $0 == UInt8(ascii: ":") || $0 == UInt8(ascii: "/") }
            return .other
        }
    }

    /// What stands between the opening quote, already read, and the closing one.
    private mutating func string() -> String? {
        var content: [UInt8] = []
        while let byte = peek {
            position += 1
            switch byte {
            case UInt8(ascii: "\""):
                return String(decoding: content, as: UTF8.self)
            case UInt8(ascii: "\\"):
                guard let next = peek, next == UInt8(ascii: "\"") || next == byte else { return nil }
                position += 1
                content.append(next)
            case 0x20...0x7E:
                content.append(byte)
            default:
                return nil
            }
        }
        return nil
    }

    /// As ``string()``, but with escapes in lower-case hexadecimal that must be UTF-8 (RFC 9651 §4.2.10).
    private mutating func displayString() -> Bool {
        var content: [UInt8] = []
        while let byte = peek {
            position += 1
            switch byte {
            case UInt8(ascii: "\""):
                return String(validating: content, as: UTF8.self) != nil
            case UInt8(ascii: "%"):
                let digits = bytes[position...].prefix(2)
                guard digits.count == 2, digits.allSatisfy({ $0.isDigit || $0.isHexLetter }),
                    let high = digits.first?.hexValue, let low = digits.last?.hexValue
                else { return false }
                position += 2
                content.append(high << 4 | low)
            case 0x20...0x7E:
                content.append(byte)
            default:
                return false
            }
        }
        return false
    }

    /// At most 15 digits, or 12 and up to three behind a point (RFC 9651 §4.2.4).
    private mutating func number(allowsFraction: Bool) -> Bool {
        _ = consume(UInt8(ascii: "-"))
        let whole = take(while: \.isDigit).count
        guard whole >= 1, whole <= 15 else { return false }
        guard allowsFraction, consume(UInt8(ascii: ".")) else { return true }
        let fraction = take(while: \.isDigit).count
        return whole <= 12 && fraction >= 1 && fraction <= 3
    }
}

extension UInt8 {
    fileprivate var isLowerCaseLetter: Bool { self >= UInt8(ascii: "a") && self <= UInt8(ascii: "z") }

    fileprivate var isHexLetter: Bool { self >= UInt8(ascii: "a") && self <= UInt8(ascii: "f") }
}
