// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// A media type in one spelling (RFC 9110 §8.3.1), for the keys of requests with content.
///
/// Type, subtype, parameter names and the value of `charset` go to lower case; white space and the quotes around a token
/// go away. Other values keep their case, parameters their order: some types give both a meaning.
package struct CanonicalContentType: Sendable {
    /// The canonical text; what does not parse stays as it is, its ends trimmed.
    package let text: String

    /// Type and subtype, such as `application/json`; "" for what does not parse.
    package let essence: String

    /// The value of the first `charset` in lower case, nil where there is none.
    package let charset: String?

    /// Reads a field value; linear time.
    package init(_ value: String) {
        let cleaned = HeaderFields.Line(name: .contentType, value: value).value
        guard let parsed = CanonicalContentType(parsing: cleaned) else {
            text = cleaned
            essence = ""
            charset = nil
            return
        }
        self = parsed
    }

    /// nil for what is no media type, an absent `/` or a parameter without a value included.
    package init?(parsing value: String) {
        var scanner = FieldScanner(value)
        scanner.skipWhitespace()
        guard let type = scanner.token(), scanner.consume(UInt8(ascii: "/")), let subtype = scanner.token() else {
            return nil
        }
        let essence = "\(type)/\(subtype)".loweringASCII()
        var text = essence
        var charset: String?
        scanner.skipWhitespace()
        while !scanner.isAtEnd {
            guard scanner.consume(UInt8(ascii: ";")) else { return nil }
            scanner.skipWhitespace()
            // RFC 9110 §5.6.6 lets a parameter be missing behind its semicolon.
            guard let name = scanner.token()?.loweringASCII() else { continue }
            guard scanner.consume(UInt8(ascii: "=")), var value = scanner.token() ?? scanner.quotedString() else {
                return nil
            }
            if name == "charset" {
                value = value.loweringASCII()
                charset = charset ?? value
            }
            text += ";\(name)=\(CanonicalContentType.quotedWhereNeeded(value))"
            scanner.skipWhitespace()
        }
        self.text = text
        self.essence = essence
        self.charset = charset
    }

    /// Whether the content is JSON in UTF-8: `application/json`, or any type with the suffix `+json` (RFC 6839 §3.1).
    package var isJSON: Bool {
        guard essence == "application/json" || essence.hasSuffix("+json") else { return false }
        return charset == nil || charset == "utf-8" || charset == "us-ascii"
    }

    private static func quotedWhereNeeded(_ value: String) -> String {
        if !value.isEmpty, value.utf8.allSatisfy(\.isTokenCharacter) { return value }
        var bytes: [UInt8] = [UInt8(ascii: "\"")]
        for byte in value.utf8 {
            if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") { bytes.append(UInt8(ascii: "\\")) }
            bytes.append(byte)
        }
        bytes.append(UInt8(ascii: "\""))
        return String(decoding: bytes, as: UTF8.self)
    }
}
