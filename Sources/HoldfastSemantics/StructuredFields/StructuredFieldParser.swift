// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Reads structured fields exactly as RFC 9651 §4.2 says: any fault fails the whole field.
///
/// One pass without going back and without recursion (inner lists cannot nest), so input of any length costs linear
/// time and constant stack.
struct StructuredFieldParser {
    private let bytes: [UInt8]
    private(set) var position = 0

    init(_ text: String) {
        bytes = Array(text.utf8)
    }

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

    /// The text of the bytes from `start` to the position; only for bytes known to be ASCII.
    func text(from start: Int) -> String {
        String(decoding: bytes[start..<position], as: UTF8.self)
    }

    func fault(_ code: StructuredFieldError.Code, _ message: String) -> StructuredFieldError {
        StructuredFieldError(code, message, at: position)
    }

    /// A whole field: spaces around the value, nothing else behind it.
    mutating func field<Value>(
        _ body: (inout StructuredFieldParser) throws(StructuredFieldError) -> Value
    ) throws(StructuredFieldError) -> Value {
        skipSpaces()
        let value = try body(&self)
        skipSpaces()
        guard isAtEnd else { throw fault(.separator, "Nothing may follow the value; remove what stands behind it.") }
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
            guard !isAtEnd else { throw fault(.innerList, "An inner list must end with \")\".") }
            items.append(try item())
            guard peek == UInt8(ascii: " ") || peek == UInt8(ascii: ")") else {
                throw fault(.innerList, "Items of an inner list must be parted by spaces and end with \")\".")
            }
        }
    }

    /// Eats the comma and the white space around it; false at the end of the field.
    private mutating func hasFurtherMember() throws(StructuredFieldError) -> Bool {
        skipWhitespace()
        guard !isAtEnd else { return false }
        guard consume(",") else { throw fault(.separator, "Members must be parted by commas.") }
        skipWhitespace()
        guard !isAtEnd else { throw fault(.separator, "A comma must be followed by a member; remove the last one.") }
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
            throw fault(.key, "A key must start with a lower-case letter or \"*\".")
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

    /// What may follow in a key (RFC 9651 §3.1.2).
    var isStructuredKeyCharacter: Bool {
        startsStructuredKey || isDigit || self == UInt8(ascii: "_") || self == UInt8(ascii: "-")
            || self == UInt8(ascii: ".")
    }

    /// The first character of a Token (RFC 9651 §3.3.4).
    var startsStructuredToken: Bool { isLetter || self == UInt8(ascii: "*") }

    /// What may follow in a Token (RFC 9651 §3.3.4).
    var isStructuredTokenCharacter: Bool {
        isTokenCharacter || self == UInt8(ascii: ":") || self == UInt8(ascii: "/")
    }

    /// What a String may hold unescaped or escaped (RFC 9651 §3.3.3).
    var isPrintableASCII: Bool { self >= 0x20 && self <= 0x7E }
}
