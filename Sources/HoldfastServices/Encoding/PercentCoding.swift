// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Percent-encoding of URI parts (RFC 3986 §2.1).
enum PercentCoding {
    /// Which bytes are not encoded.
    enum Part {
        /// pchar (RFC 3986 §3.3) except ";", because some servers cut a segment there before they check its dots, and take
        /// `..;` for `..`.
        case pathSegment
        /// Unreserved only, so that every server reads the same.
        case unreserved
        /// What application/x-www-form-urlencoded leaves: ASCII letters and digits and `*-._`; a space is "+" (WHATWG URL
        /// §5.2).
        case form
        /// What stands between quotes in the head of a form's part: all but the quote and line ends (WHATWG HTML §4.10.21.8).
        case partName
    }

    private static let digits = Array("0123456789ABCDEF".utf8)

    static func encode(_ text: String, allowing part: Part) -> String {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.utf8.count)
        for byte in text.utf8 {
            if isAllowed(byte, in: part) {
                bytes.append(byte)
            } else if part == .form, byte == UInt8(ascii: " ") {
                bytes.append(UInt8(ascii: "+"))
            } else {
                append(byte, to: &bytes)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Encodes what a path or a query cannot contain, and leaves what is already encoded.
    static func repair(_ text: some Sequence<UInt8>) -> String {
        let all = Array(text)
        var bytes: [UInt8] = []
        bytes.reserveCapacity(all.count)
        for (index, byte) in all.enumerated() {
            let isEscape =
                byte == UInt8(ascii: "%") && index + 2 < all.count && value(of: all[index + 1]) != nil
                && value(of: all[index + 2]) != nil
            if isEscape || isAllowed(byte, in: .pathSegment) || "/?;".utf8.contains(byte) {
                bytes.append(byte)
            } else {
                append(byte, to: &bytes)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// The decoded text; a "%" without two hexadecimal digits after it stays, and bytes that are not UTF-8 become U+FFFD.
    ///
    /// - Parameter plusIsSpace: whether "+" means a space, as in forms.
    static func decode(_ text: some Sequence<UInt8>, plusIsSpace: Bool) -> String {
        let all = Array(text)
        var bytes: [UInt8] = []
        bytes.reserveCapacity(all.count)
        var index = 0
        while index < all.count {
            let byte = all[index]
            index += 1
            if byte == UInt8(ascii: "%"), index + 1 < all.count, let high = value(of: all[index]),
                let low = value(of: all[index + 1])
            {
                bytes.append(high << 4 | low)
                index += 2
            } else {
                bytes.append(plusIsSpace && byte == UInt8(ascii: "+") ? UInt8(ascii: " ") : byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    private static func append(_ byte: UInt8, to bytes: inout [UInt8]) {
        bytes.append(UInt8(ascii: "%"))
        bytes.append(digits[Int(byte >> 4)])
        bytes.append(digits[Int(byte & 15)])
    }

    private static func value(of digit: UInt8) -> UInt8? {
        Character(UnicodeScalar(digit)).hexDigitValue.map { UInt8($0) }
    }

    private static func isAllowed(_ byte: UInt8, in part: Part) -> Bool {
        if part == .partName { return !"\"\r\n".utf8.contains(byte) }
        return switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        case UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"): true
        case UInt8(ascii: "~"): part != .form
        case UInt8(ascii: "*"): part != .unreserved
        default: part == .pathSegment && "!$&'()+,=:@".utf8.contains(byte)
        }
    }
}
