// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Writes structured fields exactly as RFC 9651 §4.1 says, and refuses what cannot be read back.
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
                "A key must be lower-case letters, digits, \"_\", \"-\", \".\" or \"*\", a letter or \"*\" first."
            )
        }
        write(key)
    }

    private mutating func bareItem(_ value: StructuredBareItem) throws(StructuredFieldError) {
        switch value {
        case .integer(let number): try integer(number, .number)
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
            try integer(seconds, .date)
        case .displayString(let text): displayString(text)
        }
    }

    private mutating func integer(
        _ number: Int64,
        _ code: StructuredFieldError.Code
    ) throws(StructuredFieldError) {
        guard number.magnitude <= UInt64(StructuredBareItem.maximumInteger) else {
            throw StructuredFieldError(code, "Integers and Dates have at most 15 digits; use a smaller number.")
        }
        write(String(number))
    }

    private mutating func decimal(_ number: StructuredDecimal) throws(StructuredFieldError) {
        let magnitude = number.thousandths.magnitude
        guard magnitude <= UInt64(StructuredDecimal.maximumThousandths) else {
            throw StructuredFieldError(.number, "A Decimal has at most 12 digits before the point; use a smaller one.")
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
                "A String holds printable ASCII only; use a Display String for other text."
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
            throw StructuredFieldError(.token, "This text is no Token; write it as a String.")
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
