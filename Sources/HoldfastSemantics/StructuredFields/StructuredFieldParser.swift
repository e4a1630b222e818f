// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Parses structured fields exactly as RFC 9651 §4.2 says: any error fails the whole field.
///
/// One pass without backtracking or recursion (inner lists cannot nest), so input of any length costs linear time and constant
/// stack.
struct StructuredFieldParser {
    private let bytes: [UInt8]
    private(set) var position = 0

    init(_ text: String) { bytes = Array(text.utf8) }

    var isAtEnd: Bool { position >= bytes.count }

    var peek: UInt8? { position < bytes.count ? bytes[position] : nil }

    mutating func next() -> UInt8? {
        guard position < bytes.count else { return nil }
        position += 1
        return bytes[position - 1]
    }

    mutating func consume(_ character: Unicode.Scalar) -> Bool {
        guard peek == UInt8(ascii: character) else { return false }
        position += 1
        return true
    }

    /// The text of the bytes from `start` to the position; only for known ASCII.
    func text(from start: Int) -> String {
        String(decoding: bytes[start..<position], as: UTF8.self)
    }

    func fault(_ code: StructuredFieldError.Code, message: String) -> StructuredFieldError {
        StructuredFieldError(code, message: message, at: position)
    }

    /// A whole field: the value with spaces around it, and nothing after it.
    mutating func field<Value>(
        _ body: (inout StructuredFieldParser) throws(StructuredFieldError) -> Value
    ) throws(StructuredFieldError) -> Value {
        skipSpaces()
        let value = try body(&self)
        skipSpaces()
        guard isAtEnd else {
            throw fault(.separator, message: "Nothing may follow the value; remove what comes after it.")
        }
        return value
    }

    mutating func list() throws(StructuredFieldError) -> StructuredList {
        var list = StructuredList()
        while !isAtEnd {
            list.members.append(try member())
            guard try hasFurtherMember() else { break }
        }
        return list
    }

    mutating func dictionary() throws(StructuredFieldError) -> StructuredDictionary {
        var dictionary = StructuredDictionary()
        while !isAtEnd {
            let key = try key()
            if consume("=") {
                dictionary[key] = try member()
            } else {
                dictionary[key] = .item(StructuredItem(.boolean(true), parameters: try parameters()))
            }
            guard try hasFurtherMember() else { break }
        }
        return dictionary
    }

    mutating func item() throws(StructuredFieldError) -> StructuredItem {
        let value = try bareItem()
        return StructuredItem(value, parameters: try parameters())
    }

    private mutating func member() throws(StructuredFieldError) -> StructuredMember {
        guard consume("(") else { return .item(try item()) }
        var items: [StructuredItem] = []
        while true {
            skipSpaces()
            if consume(")") { return .innerList(StructuredInnerList(items, parameters: try parameters())) }
            guard !isAtEnd else { throw fault(.innerList, message: "An inner list must end with \")\".") }
            items.append(try item())
            guard peek == UInt8(ascii: " ") || peek == UInt8(ascii: ")") else {
                throw fault(
                    .innerList,
                    message: "Items of an inner list must be separated by spaces, and the list must end with \")\"."
                )
            }
        }
    }

    /// Consumes the comma and the whitespace around it; false at the end of the field.
    private mutating func hasFurtherMember() throws(StructuredFieldError) -> Bool {
        skipWhitespace()
        guard !isAtEnd else { return false }
        guard consume(",") else { throw fault(.separator, message: "Members must be separated by commas.") }
        skipWhitespace()
        guard !isAtEnd else {
            throw fault(.separator, message: "A comma must be followed by a member; remove the last one.")
        }
        return true
    }

    private mutating func parameters() throws(StructuredFieldError) -> StructuredParameters {
        var parameters = StructuredParameters()
        while consume(";") {
            skipSpaces()
            let key = try key()
            parameters[key] = consume("=") ? try bareItem() : .boolean(true)
        }
        return parameters
    }

    private mutating func key() throws(StructuredFieldError) -> String {
        let start = position
        guard let first = peek, first.startsStructuredKey else {
            throw fault(.key, message: "A key must start with a lower-case letter or \"*\".")
        }
        while let byte = peek, byte.isStructuredKeyCharacter { position += 1 }
        return text(from: start)
    }

    private mutating func skipSpaces() {
        while peek == UInt8(ascii: " ") { position += 1 }
    }

    private mutating func skipWhitespace() {
        while let byte = peek, byte.isOptionalWhitespace { position += 1 }
    }
}

extension UInt8 {
    /// lcalpha or "*" of RFC 9651 §3.1.2.
    var startsStructuredKey: Bool { (isLetter && !isUpperCaseLetter) || self == UInt8(ascii: "*") }

    /// The other characters of a key (RFC 9651 §3.1.2).
    var isStructuredKeyCharacter: Bool {
        startsStructuredKey || isDigit || self == UInt8(ascii: "_") || self == UInt8(ascii: "-")
            || self == UInt8(ascii: ".")
    }

    /// The first character of a Token (RFC 9651 §3.3.4).
    var startsStructuredToken: Bool { isLetter || self == UInt8(ascii: "*") }

    /// The other characters of a Token (RFC 9651 §3.3.4).
    var isStructuredTokenCharacter: Bool {
        isTokenCharacter || self == UInt8(ascii: ":") || self == UInt8(ascii: "/")
    }

    /// The characters of a String, escaped or not (RFC 9651 §3.3.3).
    var isPrintableASCII: Bool { self >= 0x20 && self <= 0x7E }
}

/// The bare items of RFC 9651 §4.2.3.1 to §4.2.10.
extension StructuredFieldParser {
    mutating func bareItem() throws(StructuredFieldError) -> StructuredBareItem {
        guard let first = peek else { throw fault(.item, message: "A value must follow here.") }
        switch first {
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): return try number()
        case UInt8(ascii: "\""): return .string(try string())
        case UInt8(ascii: ":"): return .byteSequence(try byteSequence())
        case UInt8(ascii: "?"): return .boolean(try boolean())
        case UInt8(ascii: "@"): return .date(try date())
        case UInt8(ascii: "%"): return .displayString(try displayString())
        case _ where first.startsStructuredToken: return .token(token())
        default: throw fault(.item, message: "No value starts with this character.")
        }
    }

    private mutating func number() throws(StructuredFieldError) -> StructuredBareItem {
        let isNegative = consume("-")
        let (whole, wholeDigits) = digits()
        guard wholeDigits > 0 else { throw fault(.number, message: "A number must have a digit here.") }
        guard wholeDigits <= 15 else { throw fault(.number, message: "An Integer has at most 15 digits.") }
        guard consume(".") else { return .integer(isNegative ? -whole : whole) }
        guard wholeDigits <= 12 else {
            throw fault(.number, message: "A Decimal has at most 12 digits before the point.")
        }
        let (fraction, fractionDigits) = digits()
        let scale: Int64
        switch fractionDigits {
        case 1: scale = 100
        case 2: scale = 10
        case 3: scale = 1
        default: throw fault(.number, message: "A Decimal has one to three digits after the point.")
        }
        let thousandths = whole * 1000 + fraction * scale
        return .decimal(StructuredDecimal(thousandths: isNegative ? -thousandths : thousandths))
    }

    /// The digits at the position; only the first 15 count for the value, so it cannot overflow.
    private mutating func digits() -> (value: Int64, count: Int) {
        var value: Int64 = 0
        var count = 0
        while let byte = peek, byte.isDigit {
            _ = next()
            count += 1
            if count <= 15 { value = value * 10 + Int64(byte - UInt8(ascii: "0")) }
        }
        return (value, count)
    }

    private mutating func string() throws(StructuredFieldError) -> String {
        _ = next()
        var content: [UInt8] = []
        while let byte = next() {
            switch byte {
            case UInt8(ascii: "\""):
                return String(decoding: content, as: UTF8.self)
            case UInt8(ascii: "\\"):
                guard let escaped = next(), escaped == UInt8(ascii: "\"") || escaped == UInt8(ascii: "\\") else {
                    throw fault(
                        .string,
                        message: "In a String, a backslash may only come before a quote or a backslash."
                    )
                }
                content.append(escaped)
            case _ where byte.isPrintableASCII:
                content.append(byte)
            default:
                throw fault(
                    .string,
                    message: "A String contains only printable ASCII; use a Display String for other text."
                )
            }
        }
        throw fault(.string, message: "A String must end with a quote.")
    }

    private mutating func token() -> String {
        let start = position
        while let byte = peek, byte.isStructuredTokenCharacter { _ = next() }
        return text(from: start)
    }

    private mutating func byteSequence() throws(StructuredFieldError) -> [UInt8] {
        _ = next()
        var decoder = StructuredBase64.Decoder()
        while let byte = next() {
            if byte == UInt8(ascii: ":") {
                guard let content = decoder.finish() else { break }
                return content
            }
            guard decoder.add(byte) else { break }
        }
        throw fault(.byteSequence, message: "A Byte Sequence must be base64 between two colons.")
    }

    private mutating func boolean() throws(StructuredFieldError) -> Bool {
        _ = next()
        if consume("1") { return true }
        guard consume("0") else { throw fault(.boolean, message: "A Boolean must be ?0 or ?1.") }
        return false
    }

    private mutating func date() throws(StructuredFieldError) -> Int64 {
        _ = next()
        guard case .integer(let seconds) = try number() else {
            throw fault(.date, message: "A Date must be a whole number of seconds.")
        }
        return seconds
    }

    private mutating func displayString() throws(StructuredFieldError) -> String {
        _ = next()
        guard consume("\"") else { throw fault(.displayString, message: "A Display String must start with %\".") }
        var content: [UInt8] = []
        while let byte = next() {
            switch byte {
            case UInt8(ascii: "\""):
                guard let text = String(validating: content, as: UTF8.self) else {
                    throw fault(.displayString, message: "A Display String must contain valid UTF-8.")
                }
                return text
            case UInt8(ascii: "%"):
                guard let high = next()?.lowerCaseHexValue, let low = next()?.lowerCaseHexValue else {
                    throw fault(
                        .displayString,
                        message: "A percent sign must be followed by two lower-case hex digits."
                    )
                }
                content.append(high << 4 | low)
            case _ where byte.isPrintableASCII:
                content.append(byte)
            default:
                throw fault(.displayString, message: "A Display String is written in printable ASCII; escape the rest.")
            }
        }
        throw fault(.displayString, message: "A Display String must end with a quote.")
    }
}

extension UInt8 {
    /// The value of a hexadecimal digit; upper case is invalid in a Display String (RFC 9651 §4.2.10).
    fileprivate var lowerCaseHexValue: UInt8? {
        switch self {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): self - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): self - UInt8(ascii: "a") + 10
        default: nil
        }
    }
}

/// Why a text is not a structured field, or a value cannot be written as one (RFC 9651 §4).
package struct StructuredFieldError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The kind of error; its raw value is stable and suitable for metric labels.
    package struct Code: RawRepresentable, Sendable, Hashable {
        /// The stable text.
        package let rawValue: String

        /// Creates a code from its stable text.
        package init(rawValue: String) { self.rawValue = rawValue }

        /// A key outside RFC 9651 §3.1.2.
        package static let key = Code(rawValue: "key")
        /// A number that is malformed or out of range.
        package static let number = Code(rawValue: "number")
        /// A String that is not closed or contains an invalid character.
        package static let string = Code(rawValue: "string")
        /// A Token with an invalid character.
        package static let token = Code(rawValue: "token")
        /// A Byte Sequence that is not closed or not base64.
        package static let byteSequence = Code(rawValue: "byte-sequence")
        /// A Boolean other than `?0` and `?1`.
        package static let boolean = Code(rawValue: "boolean")
        /// A Date that is not an Integer, or out of range.
        package static let date = Code(rawValue: "date")
        /// A Display String that is not closed, badly escaped, or not UTF-8.
        package static let displayString = Code(rawValue: "display-string")
        /// A missing value.
        package static let item = Code(rawValue: "item")
        /// An inner list that is not closed, or whose items are not separated by spaces.
        package static let innerList = Code(rawValue: "inner-list")
        /// A comma without a member after it, or text in place of a comma.
        package static let separator = Code(rawValue: "separator")
    }

    /// The kind of error.
    package let code: Code

    /// What is wrong and what to do about it, for people; contains nothing of the field's content.
    package let message: String

    /// The byte of the field value at which parsing stopped; nil if a value could not be written.
    package let position: Int?

    init(_ code: Code, message: String, at position: Int? = nil) {
        self.code = code
        self.message = message
        self.position = position
    }

    /// The message with code and position.
    package var description: String {
        "\(message) [\(code.rawValue)\(position.map { " at byte \($0)" } ?? "")]"
    }
}
