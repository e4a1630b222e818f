// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Writes structured fields exactly as RFC 9651 §4.1 says, and refuses what could not be parsed.
struct StructuredFieldSerializer {
    private var bytes: [UInt8] = []

    var text: String { String(decoding: bytes, as: UTF8.self) }

    mutating func list(_ list: StructuredList) throws(StructuredFieldError) {
        for (index, member) in list.members.enumerated() {
            if index > 0 { write(", ") }
            try self.member(member)
        }
    }

    mutating func dictionary(_ dictionary: StructuredDictionary) throws(StructuredFieldError) {
        for (index, pair) in dictionary.enumerated() {
            if index > 0 { write(", ") }
            try key(pair.key)
            if case .item(let item) = pair.value, item.value == .boolean(true) {
                try parameters(item.parameters)
            } else {
                write("=")
                try member(pair.value)
            }
        }
    }

    mutating func item(_ item: StructuredItem) throws(StructuredFieldError) {
        try bareItem(item.value)
        try parameters(item.parameters)
    }

    private mutating func member(_ member: StructuredMember) throws(StructuredFieldError) {
        switch member {
        case .item(let item):
            try self.item(item)
        case .innerList(let list):
            write("(")
            for (index, item) in list.items.enumerated() {
                if index > 0 { write(" ") }
                try self.item(item)
            }
            write(")")
            try parameters(list.parameters)
        }
    }

    private mutating func parameters(_ parameters: StructuredParameters) throws(StructuredFieldError) {
        for (name, value) in parameters {
            write(";")
            try key(name)
            guard value != .boolean(true) else { continue }
            write("=")
            try bareItem(value)
        }
    }

    private mutating func key(_ key: String) throws(StructuredFieldError) {
        guard let first = key.utf8.first, first.startsStructuredKey,
            key.utf8.allSatisfy(\.isStructuredKeyCharacter)
        else {
            throw StructuredFieldError(
                .key,
                message:
                    "A key consists of lower-case letters, digits, \"_\", \"-\", \".\" and \"*\", and starts with a letter or \"*\"."
            )
        }
        write(key)
    }

    private mutating func bareItem(_ value: StructuredBareItem) throws(StructuredFieldError) {
        switch value {
        case .integer(let number): try integer(number, code: .number)
        case .decimal(let number): try decimal(number)
        case .string(let text): try string(text)
        case .token(let text): try token(text)
        case .byteSequence(let content):
            write(":")
            bytes += StructuredBase64.encode(content)
            write(":")
        case .boolean(let isTrue): write(isTrue ? "?1" : "?0")
        case .date(let seconds):
            write("@")
            try integer(seconds, code: .date)
        case .displayString(let text): displayString(text)
        }
    }

    private mutating func integer(
        _ number: Int64,
        code: StructuredFieldError.Code
    ) throws(StructuredFieldError) {
        guard number.magnitude <= UInt64(StructuredBareItem.maximumInteger) else {
            throw StructuredFieldError(
                code,
                message: "Integers and Dates have at most 15 digits; use a smaller number."
            )
        }
        write(String(number))
    }

    private mutating func decimal(_ number: StructuredDecimal) throws(StructuredFieldError) {
        let magnitude = number.thousandths.magnitude
        guard magnitude <= UInt64(StructuredDecimal.maximumThousandths) else {
            throw StructuredFieldError(
                .number,
                message: "A Decimal has at most 12 digits before the point; use a smaller one."
            )
        }
        if number.thousandths < 0 { write("-") }
        write("\(magnitude / 1000).")
        var fraction = magnitude % 1000
        var divisor: UInt64 = 100
        repeat {
            write(String(fraction / divisor))
            fraction %= divisor
            divisor /= 10
        } while fraction > 0
    }

    private mutating func string(_ text: String) throws(StructuredFieldError) {
        guard text.utf8.allSatisfy(\.isPrintableASCII) else {
            throw StructuredFieldError(
                .string,
                message: "A String contains only printable ASCII; use a Display String for other text."
            )
        }
        write("\"")
        for byte in text.utf8 {
            if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") { write("\\") }
            bytes.append(byte)
        }
        write("\"")
    }

    private mutating func token(_ text: String) throws(StructuredFieldError) {
        guard text.isStructuredToken else {
            throw StructuredFieldError(.token, message: "This text is not a Token; write it as a String.")
        }
        write(text)
    }

    private mutating func displayString(_ text: String) {
        let digits = Array("0123456789abcdef".utf8)
        write("%\"")
        for byte in text.utf8 {
            if byte.isPrintableASCII, byte != UInt8(ascii: "%"), byte != UInt8(ascii: "\"") {
                bytes.append(byte)
            } else {
                bytes += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        write("\"")
    }

    private mutating func write(_ text: String) {
        bytes += text.utf8
    }
}

extension String {
    /// Whether the text is a Token (RFC 9651 §3.3.4).
    var isStructuredToken: Bool {
        guard let first = utf8.first, first.startsStructuredToken else { return false }
        return utf8.allSatisfy(\.isStructuredTokenCharacter)
    }
}

/// Base64 as Byte Sequences use it (RFC 4648 §4; RFC 9651 §4.1.8, §4.2.7).
enum StructuredBase64 {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

    /// The text of some bytes, padded.
    static func encode(_ bytes: [UInt8]) -> [UInt8] {
        var text: [UInt8] = []
        text.reserveCapacity((bytes.count / 3 + 1) * 4)
        var index = 0
        while index < bytes.count {
            let rest = bytes.count - index
            let first = UInt32(bytes[index]) << 16
            let second = rest > 1 ? UInt32(bytes[index + 1]) << 8 : 0
            let third = rest > 2 ? UInt32(bytes[index + 2]) : 0
            let group = first | second | third
            text.append(alphabet[Int(group >> 18 & 63)])
            text.append(alphabet[Int(group >> 12 & 63)])
            text.append(rest > 1 ? alphabet[Int(group >> 6 & 63)] : UInt8(ascii: "="))
            text.append(rest > 2 ? alphabet[Int(group & 63)] : UInt8(ascii: "="))
            index += 3
        }
        return text
    }

    /// Decodes character by character. Missing padding and leftover bits that are not zero are accepted, as RFC 9651 §4.2.7
    /// recommends; padding that is present must be correct.
    struct Decoder {
        private var content: [UInt8] = []
        private var group: UInt32 = 0
        private var characters = 0
        private var padding = 0

        /// Adds one character; false if base64 does not allow it there.
        mutating func add(_ byte: UInt8) -> Bool {
            if byte == UInt8(ascii: "=") {
                padding += 1
                return padding <= 2
            }
            guard padding == 0, let value = Decoder.value(of: byte) else { return false }
            group = (group << 6 | value) & 0xFF_FFFF
            characters += 1
            if characters % 4 == 0 {
                content.append(UInt8(truncatingIfNeeded: group >> 16))
                content.append(UInt8(truncatingIfNeeded: group >> 8))
                content.append(UInt8(truncatingIfNeeded: group))
            }
            return true
        }

        /// The bytes, or nil if the text cannot end here.
        mutating func finish() -> [UInt8]? {
            guard padding == 0 || (characters + padding) % 4 == 0 else { return nil }
            switch characters % 4 {
            case 0:
                guard padding == 0 else { return nil }
            case 2:
                content.append(UInt8(truncatingIfNeeded: group >> 4))
            case 3:
                content.append(UInt8(truncatingIfNeeded: group >> 10))
                content.append(UInt8(truncatingIfNeeded: group >> 2))
            default:
                return nil
            }
            return content
        }

        private static func value(of byte: UInt8) -> UInt32? {
            switch byte {
            case UInt8(ascii: "A")...UInt8(ascii: "Z"): UInt32(byte - UInt8(ascii: "A"))
            case UInt8(ascii: "a")...UInt8(ascii: "z"): UInt32(byte - UInt8(ascii: "a")) + 26
            case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt32(byte - UInt8(ascii: "0")) + 52
            case UInt8(ascii: "+"): 62
            case UInt8(ascii: "/"): 63
            default: nil
            }
        }
    }
}
