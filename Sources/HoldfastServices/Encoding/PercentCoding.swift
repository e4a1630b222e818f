// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Percent-encoding of URI parts (RFC 3986 §2.1).
enum PercentCoding {
    /// Which bytes go out as they are.
    enum Part {
        /// pchar: unreserved, sub-delims, ":" and "@" (RFC 3986 §3.3).
        case pathSegment
        /// Unreserved alone, so that every server reads the same.
        case unreserved
    }

    private static let digits = Array("0123456789ABCDEF".utf8)

    static func encode(_ text: String, allowing part: Part) -> String {
        var bytes: [UInt8] = []
        for byte in text.utf8 {
            if isAllowed(byte, in: part) {
                bytes.append(byte)
            } else {
                bytes += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    private static func isAllowed(_ byte: UInt8, in part: Part) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        case UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "~"): true
        default: part == .pathSegment && "!$&'()*+,;=:@".utf8.contains(byte)
        }
    }
}
