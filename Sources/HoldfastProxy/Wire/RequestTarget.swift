// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import HoldfastSemantics

    /// The target of a request line, as it arrived (RFC 9112 §3.2).
    package struct RequestTarget: Sendable, Hashable {
        /// The forms of a target; closed.
        package enum Form: Sendable, Hashable {
            /// A path with an optional query: `/path?query`.
            case origin
            /// A whole URI, as sent to a forward proxy.
            case absolute
            /// Host and port, with `CONNECT` only.
            case authority
            /// `*`, with `OPTIONS` only.
            case asterisk
        }

        /// The form.
        package let form: Form
        /// The target's text, not decoded.
        package let text: String

        /// Reads the target in the bytes.
        ///
        /// - Throws: 400 for an invalid target: white space, control characters, a fragment, bytes that are not UTF-8,
        ///   or a form that the method does not have.
        init(_ bytes: UnsafeRawBufferPointer, method: RequestMethod) throws(MessageFault) {
            guard let first = bytes.first else { throw RequestTarget.malformed }
            var combined: UInt8 = 0
            for byte in bytes {
                guard byte > 0x20, byte != 0x7F, byte != UInt8(ascii: "#") else { throw RequestTarget.malformed }
                combined |= byte
            }
            if combined >= 0x80 {
                guard let text = String(validating: bytes, as: UTF8.self) else {
                    throw MessageFault("The request's target is not UTF-8. Percent-encode it.")
                }
                self.text = text
            } else {
                text = FieldText.string(bytes)
            }
            if method == .connect {
                guard HostField.isValid(bytes, needsPort: true) else {
                    throw MessageFault("The target of CONNECT is not a host and port.")
                }
                form = .authority
            } else if first == UInt8(ascii: "/") {
                form = .origin
            } else if bytes.count == 1, first == UInt8(ascii: "*") {
                guard method == .options else { throw MessageFault("Only OPTIONS can have the target *.") }
                form = .asterisk
            } else {
                guard RequestTarget.isAbsolute(bytes) else { throw RequestTarget.malformed }
                form = .absolute
            }
        }

        private static let malformed = MessageFault(
            "The request line has no valid target. Percent-encode invalid characters."
        )

        /// A scheme, `://`, and the beginning of an authority.
        private static func isAbsolute(_ bytes: UnsafeRawBufferPointer) -> Bool {
            guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")), colon > 0, bytes[0].isLetter,
                bytes[..<colon].allSatisfy(\.isSchemeCharacter),
                bytes.count > colon + 3
            else { return false }
            let authority = bytes[colon + 3]
            return bytes[colon + 1] == UInt8(ascii: "/") && bytes[colon + 2] == UInt8(ascii: "/")
                && authority != UInt8(ascii: "/") && authority != UInt8(ascii: "?")
        }
    }

    /// The grammar of the Host field: `uri-host [ ":" port ]` (RFC 9110 §7.2, RFC 3986 §3.2.2).
    enum HostField {
        /// Whether the bytes are a host, with or without a port; an empty host is valid if no port is needed.
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

        /// What an address in brackets may contain besides hexadecimal digits.
        private static let literal: [UInt8] = [UInt8(ascii: ":"), UInt8(ascii: ".")]

        /// unreserved and sub-delims of RFC 3986 §2.
        private static func isNameCharacter(_ byte: UInt8) -> Bool {
            byte.isLetter || byte.isDigit || "-._~!$&'()*+,;=".utf8.contains(byte)
        }
    }
#endif
