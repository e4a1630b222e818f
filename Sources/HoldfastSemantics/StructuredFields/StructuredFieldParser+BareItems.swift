// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The bare items of RFC 9651 §4.2.3.1 to §4.2.10.
extension StructuredFieldParser {
    mutating func bareItem() throws(StructuredFieldError) -> StructuredBareItem {
        guard let first = peek else { throw fault(.item, "A value must follow here.") }
        switch first {
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): return try number()
        case UInt8(ascii: "\""): return .string(try string())
        case UInt8(ascii: ":"): return .byteSequence(try byteSequence())
        case UInt8(ascii: "?"): return .boolean(try boolean())
        case UInt8(ascii: "@"): return .date(try date())
        case UInt8(ascii: "%"): return .displayString(try displayString())
        case _ where first.startsStructuredToken: return .token(token())
        default: throw fault(.item, "No value starts with this character.")
        }
    }

    private mutating func number() throws(StructuredFieldError) -> StructuredBareItem {
        let isNegative = consume("-")
        let (whole, wholeDigits) = digits()
        guard wholeDigits > 0 else { throw fault(.number, "A number must have a digit here.") }
        guard wholeDigits <= 15 else { throw fault(.number, "An Integer has at most 15 digits.") }
        guard consume(".") else { return .integer(isNegative ? -whole : whole) }
        guard wholeDigits <= 12 else { throw fault(.number, "A Decimal has at most 12 digits before the point.") }
        let (fraction, fractionDigits) = digits()
        let scale: Int64
        switch fractionDigits {
        case 1: scale = 100
        case 2: scale = 10
        case 3: scale = 1
        default: throw fault(.number, "A Decimal has one to three digits behind the point.")
        }
        let thousandths = whole * 1000 + fraction * scale
        return .decimal(StructuredDecimal(thousandths: isNegative ? -thousandths : thousandths))
    }

    /// The digits at the position; the value counts for up to 15 of them, which cannot overflow, and stays there.
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
                    throw fault(.string, "A backslash in a String may stand before a quote or a backslash only.")
                }
                content.append(escaped)
            case _ where byte.isPrintableASCII:
                content.append(byte)
            default:
                throw fault(.string, "A String holds printable ASCII only; use a Display String for other text.")
            }
        }
        throw fault(.string, "A String must end with a quote.")
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
        throw fault(.byteSequence, "A Byte Sequence must be base64 between two colons.")
    }

    private mutating func boolean() throws(StructuredFieldError) -> Bool {
        _ = next()
        if consume("1") { return true }
        guard consume("0") else { throw fault(.boolean, "A Boolean must be ?0 or ?1.") }
        return false
    }

    private mutating func date() throws(StructuredFieldError) -> Int64 {
        _ = next()
        guard case .integer(let seconds) = try number() else {
            throw fault(.date, "A Date must be a whole number of seconds.")
        }
        return seconds
    }

    private mutating func displayString() throws(StructuredFieldError) -> String {
        _ = next()
        guard consume("\"") else { throw fault(.displayString, "A Display String must start with %\".") }
        var content: [UInt8] = []
        while let byte = next() {
            switch byte {
            case UInt8(ascii: "\""):
                guard let text = String(validating: content, as: UTF8.self) else {
                    throw fault(.displayString, "A Display String must hold valid UTF-8.")
                }
                return text
            case UInt8(ascii: "%"):
                guard let high = next()?.lowerCaseHexValue, let low = next()?.lowerCaseHexValue else {
                    throw fault(.displayString, "A percent sign must be followed by two lower-case hex digits.")
                }
                content.append(high << 4 | low)
            case _ where byte.isPrintableASCII:
                content.append(byte)
            default:
                throw fault(.displayString, "A Display String is written in printable ASCII; escape the rest.")
            }
        }
        throw fault(.displayString, "A Display String must end with a quote.")
    }
}

extension UInt8 {
    /// The value of a hexadecimal digit; upper case is an error in a Display String (RFC 9651 §4.2.10).
    fileprivate var lowerCaseHexValue: UInt8? {
        switch self {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): self - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): self - UInt8(ascii: "a") + 10
        default: nil
        }
    }
}
