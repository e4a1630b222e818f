// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The strings, numbers and words of a JSON text (RFC 8259), read strictly from bytes already known to be UTF-8.
struct JSONReader {
    /// A longer number is refused: none needs it, and its conversion would cost more than linear time.
    private static let numberLimit = 1100

    private let bytes: [UInt8]
    private var position = 0

    init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }

    var isAtEnd: Bool { position >= bytes.count }

    var peek: UInt8? { position < bytes.count ? bytes[position] : nil }

    mutating func skipWhitespace() {
        while let byte = peek, byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 { position += 1 }
    }

    mutating func consume(_ byte: UInt8) -> Bool {
        guard peek == byte else { return false }
        position += 1
        return true
    }

    /// Decodes the string at the position to the end of `output`; nil for a malformed one and for lone surrogates.
    mutating func string(into output: inout [UInt8]) -> Range<Int>? {
        guard consume(UInt8(ascii: "\"")) else { return nil }
        let start = output.count
        while let byte = peek {
            position += 1
            switch byte {
            case UInt8(ascii: "\""):
                return start..<output.count
            case UInt8(ascii: "\\"):
                guard let scalar = escape() else { return nil }
                output += String(Character(scalar)).utf8
            case 0..<0x20:
                return nil
            default:
                output.append(byte)
            }
        }
        return nil
    }

    private mutating func escape() -> Unicode.Scalar? {
        guard let byte = peek else { return nil }
        position += 1
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): return Unicode.Scalar(byte)
        case UInt8(ascii: "b"): return "\u{8}"
        case UInt8(ascii: "f"): return "\u{C}"
        case UInt8(ascii: "n"): return "\n"
        case UInt8(ascii: "r"): return "\r"
        case UInt8(ascii: "t"): return "\t"
        case UInt8(ascii: "u"): break
        default: return nil
        }
        guard let unit = codeUnit() else { return nil }
        guard (0xD800..<0xDC00).contains(unit) else { return Unicode.Scalar(unit) }
        guard consume(UInt8(ascii: "\\")), consume(UInt8(ascii: "u")), let low = codeUnit(),
            (0xDC00..<0xE000).contains(low)
        else { return nil }
        return Unicode.Scalar(0x10000 + (unit - 0xD800) << 10 + (low - 0xDC00))
    }

    private mutating func codeUnit() -> UInt32? {
        guard bytes.count - position >= 4 else { return nil }
        var unit: UInt32 = 0
        for _ in 0..<4 {
            guard let digit = bytes[position].hexValue else { return nil }
            unit = unit << 4 | UInt32(digit)
            position += 1
        }
        return unit
    }

    /// Writes the canonical form of a number, `true`, `false` or `null` to the end of `output`.
    mutating func literal(into output: inout [UInt8]) -> Range<Int>? {
        let start = output.count
        let rest = bytes[position...]
        for word in ["true", "false", "null"] where rest.starts(with: word.utf8) {
            position += word.utf8.count
            output += word.utf8
            return start..<output.count
        }
        guard let number = number() else { return nil }
        output += number.utf8
        return start..<output.count
    }

    /// The grammar of RFC 8259 §6, then the form of RFC 8785 §3.2.2.3.
    private mutating func number() -> String? {
        let start = position
        _ = consume(UInt8(ascii: "-"))
        if !consume(UInt8(ascii: "0")) {
            guard skipDigits() else { return nil }
        }
        if consume(UInt8(ascii: ".")) {
            guard skipDigits() else { return nil }
        }
        if consume(UInt8(ascii: "e")) || consume(UInt8(ascii: "E")) {
            if !consume(UInt8(ascii: "+")) { _ = consume(UInt8(ascii: "-")) }
            guard skipDigits() else { return nil }
        }
        guard position - start <= JSONReader.numberLimit else { return nil }
        let text = String(decoding: bytes[start..<position], as: UTF8.self)
        guard let value = Double(text), value.isFinite else { return nil }
        let literal = DecimalDigits(text)
        let shortest = DecimalDigits(value.description)
        guard !value.isZero || literal.digits.isEmpty else { return nil }
        // From 2^53 on a double no longer tells neighbouring integers apart, and two ids would share one key. Numbers
        // that are no ids by their spelling, such as 1E30, pass where nothing was rounded.
        if value.magnitude >= 0x1p53 {
            let isInteger = !text.utf8.contains { $0 == UInt8(ascii: ".") || $0 | 0x20 == UInt8(ascii: "e") }
            guard literal == shortest, value.magnitude == 0x1p53 || !isInteger else { return nil }
        }
        return shortest.ecmaScript
    }

    private mutating func skipDigits() -> Bool {
        let start = position
        while let byte = peek, byte.isDigit { position += 1 }
        return position > start
    }
}

/// A decimal number as the digits behind "0." and a power of ten, without zeros at either end.
struct DecimalDigits: Equatable {
    private(set) var digits: [UInt8] = []
    private(set) var exponent = 0
    private(set) var isNegative = false

    /// Reads `-12.5e+3` and the like; the caller has checked the grammar.
    init(_ text: String) {
        var isFraction = false
        var rest = text.utf8[...]
        while let byte = rest.popFirst() {
            switch byte {
            case UInt8(ascii: "-"): isNegative = true
            case UInt8(ascii: "."): isFraction = true
            case UInt8(ascii: "e"), UInt8(ascii: "E"):
                let isBelow = rest.first == UInt8(ascii: "-")
                let size = FieldScanner.number(rest.drop { !$0.isDigit }, limit: 1_000_000) ?? 0
                exponent += isBelow ? -Int(size) : Int(size)
                rest = rest[rest.endIndex...]
            default:
                if !isFraction, !(digits.isEmpty && byte == UInt8(ascii: "0")) { exponent += 1 }
                if isFraction, digits.isEmpty, byte == UInt8(ascii: "0") { exponent -= 1 }
                if !(digits.isEmpty && byte == UInt8(ascii: "0")) { digits.append(byte) }
            }
        }
        while digits.last == UInt8(ascii: "0") { digits.removeLast() }
        if digits.isEmpty {
            exponent = 0
            isNegative = false
        }
    }

    /// The spelling of ECMAScript's Number::toString, which RFC 8785 §3.2.2.3 takes over.
    var ecmaScript: String {
        guard !digits.isEmpty else { return "0" }
        var text: [UInt8] = isNegative ? [UInt8(ascii: "-")] : []
        let zero = UInt8(ascii: "0")
        let point = UInt8(ascii: ".")
        switch exponent {
        case digits.count...21 where digits.count <= 21:
            text += digits
            text += repeatElement(zero, count: exponent - digits.count)
        case 1...21:
            text += digits.prefix(exponent)
            text.append(point)
            text += digits.dropFirst(exponent)
        case -5...0:
            text += [zero, point]
            text += repeatElement(zero, count: -exponent)
            text += digits
        default:
            text += digits.prefix(1)
            if digits.count > 1 { text.append(point) }
            text += digits.dropFirst()
            text += "e\(exponent > 0 ? "+" : "")\(exponent - 1)".utf8
        }
        return String(decoding: text, as: UTF8.self)
    }
}
