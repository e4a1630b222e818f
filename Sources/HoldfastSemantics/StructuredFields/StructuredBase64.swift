// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

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

    /// Decodes character by character. Missing padding and leftover bits that are not zero are let pass, as RFC 9651
    /// §4.2.7 recommends; padding that is there must be right.
    struct Decoder {
        private var content: [UInt8] = []
        private var group: UInt32 = 0
        private var characters = 0
        private var padding = 0

        /// Takes one character; false when no base64 has it there.
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

        /// The bytes, or nil when the text cannot end here.
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
