// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    private import HoldfastSemantics

    /// The grammar of the Host field: `uri-host [ ":" port ]` (RFC 9110 §7.2, RFC 3986 §3.2.2).
    enum HostField {
        /// Whether the bytes are a host, with or without a port; an empty host is one, where no port is needed.
        static func isValid(_ bytes: UnsafeRawBufferPointer, needsPort: Bool = false) -> Bool {
            var index = 0
            if bytes.first == UInt8(ascii: "[") {
                index = 1
                while index < bytes.count, bytes[index].hexDigit != nil || literal.contains(bytes[index]) { index += 1 }
                guard index > 3, index < bytes.count, bytes[index] == UInt8(ascii: "]") else { return false }
                index += 1
            } else {
                while index < bytes.count, bytes[index] != UInt8(ascii: ":") {
                    if bytes[index] == UInt8(ascii: "%") {
                        guard index + 2 < bytes.count, bytes[index + 1].hexDigit != nil,
                            bytes[index + 2].hexDigit != nil
                        else { return false }
                    } else if !isNameCharacter(bytes[index]) {
                        return false
                    }
                    index += 1
                }
            }
            if index == bytes.count { return !needsPort }
            guard bytes[index] == UInt8(ascii: ":") else { return false }
            let port = bytes[(index + 1)...]
            guard port.count <= 5, port.allSatisfy(\.isDigit) else { return false }
            let number = port.reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) }
            return number <= 65_535 && (!needsPort || !port.isEmpty && index > 0)
        }

        /// What an address in brackets holds beside hexadecimal digits.
        private static let literal: [UInt8] = [UInt8(ascii: ":"), UInt8(ascii: ".")]

        /// unreserved and sub-delims of RFC 3986 §2.
        private static func isNameCharacter(_ byte: UInt8) -> Bool {
            if byte.isLetter || byte.isDigit { return true }
            return switch byte {
            case UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "~"), UInt8(ascii: "!"),
                UInt8(ascii: "$"), UInt8(ascii: "&"), UInt8(ascii: "'"), UInt8(ascii: "("), UInt8(ascii: ")"),
                UInt8(ascii: "*"), UInt8(ascii: "+"), UInt8(ascii: ","), UInt8(ascii: ";"), UInt8(ascii: "="):
                true
            default:
                false
            }
        }
    }
#endif
