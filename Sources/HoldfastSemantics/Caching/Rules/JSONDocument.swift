// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// A JSON text as a tree that records where each value begins, so that an error can be shown to the person who wrote it.
///
/// For short, handwritten texts: the whole tree is built, and its depth is limited.
struct JSONDocument {
    /// A value and where it begins, in bytes.
    struct Node {
        let offset: Int
        let value: Value
    }

    indirect enum Value {
        case string(String)
        case number
        case bool(Bool)
        case null
        case array([Node])
        case object([Member])

        /// The name of its kind in messages.
        var kind: String {
            switch self {
            case .string: "a string"
            case .number: "a number"
            case .bool: "true or false"
            case .null: "null"
            case .array: "a list"
            case .object: "an object"
            }
        }
    }

    struct Member {
        let name: String
        let offset: Int
        let node: Node
    }

    /// What is wrong, and where.
    struct Problem: Error {
        let message: String
        let offset: Int

        init(_ message: String, at offset: Int) {
            self.message = message
            self.offset = offset
        }
    }

    /// More levels than any valid rule file has.
    static let depthLimit = 8
    /// More members than any valid object has.
    static let memberLimit = 100

    let root: Node

    /// - Parameter bytes: UTF-8; it may begin with a byte order mark.
    init(_ bytes: [UInt8]) throws(Problem) {
        if let offset = JSONDocument.firstInvalid(in: bytes) {
            throw Problem("The text is not UTF-8; save the file in that encoding.", at: offset)
        }
        var reader = JSONReader(bytes)
        if bytes.starts(with: [0xEF, 0xBB, 0xBF]) {
            for byte in bytes.prefix(3) { _ = reader.consume(byte) }
        }
        root = try JSONDocument.node(&reader, depth: 0)
        reader.skipWhitespace()
        guard reader.isAtEnd else {
            throw Problem("There is more after the end of the object; remove it.", at: reader.position)
        }
    }

    private static func node(_ reader: inout JSONReader, depth: Int) throws(Problem) -> Node {
        reader.skipWhitespace()
        let offset = reader.position
        switch reader.peek {
        case nil:
            throw Problem("The text ends where a value must follow.", at: offset)
        case UInt8(ascii: "\"")?:
            return Node(offset: offset, value: .string(try string(&reader)))
        case UInt8(ascii: "[")?, UInt8(ascii: "{")?:
            guard depth < depthLimit else {
                throw Problem("There are more than \(depthLimit) nested lists and objects; use fewer.", at: offset)
            }
            let isObject = reader.consume(UInt8(ascii: "{")) || !reader.consume(UInt8(ascii: "["))
            return Node(offset: offset, value: try container(&reader, isObject: isObject, depth: depth + 1))
        default:
            var text: [UInt8] = []
            guard reader.literal(into: &text) != nil else {
                throw Problem(
                    "No value begins like this; write a string in double quotes, true, false, a list or an object.",
                    at: offset
                )
            }
            return Node(offset: offset, value: value(ofLiteral: String(decoding: text, as: UTF8.self)))
        }
    }

    private static func value(ofLiteral text: String) -> Value {
        switch text {
        case "true": .bool(true)
        case "false": .bool(false)
        case "null": .null
        default: .number
        }
    }

    private static func container(
        _ reader: inout JSONReader,
        isObject: Bool,
        depth: Int
    ) throws(Problem) -> Value {
        let end = UInt8(ascii: isObject ? "}" : "]")
        var nodes: [Node] = []
        var members: [Member] = []
        reader.skipWhitespace()
        if reader.consume(end) { return isObject ? .object([]) : .array([]) }
        while true {
            if isObject {
                members.append(try member(&reader, after: members, depth: depth))
            } else {
                nodes.append(try node(&reader, depth: depth))
            }
            reader.skipWhitespace()
            if reader.consume(end) { return isObject ? .object(members) : .array(nodes) }
            guard reader.consume(UInt8(ascii: ",")) else {
                throw Problem("A comma or \(isObject ? "}" : "]") must follow here.", at: reader.position)
            }
        }
    }

    private static func member(
        _ reader: inout JSONReader,
        after members: [Member],
        depth: Int
    ) throws(Problem) -> Member {
        reader.skipWhitespace()
        let offset = reader.position
        guard reader.peek == UInt8(ascii: "\"") else {
            throw Problem("The name of a member must follow here, in double quotes.", at: offset)
        }
        guard members.count < memberLimit else {
            throw Problem("An object has more than \(memberLimit) members; leave some out.", at: offset)
        }
        let name = try string(&reader)
        if members.contains(where: { $0.name.utf8.elementsEqual(name.utf8) }) {
            throw Problem("\"\(name)\" occurs twice; write it once.", at: offset)
        }
        reader.skipWhitespace()
        guard reader.consume(UInt8(ascii: ":")) else {
            throw Problem("A colon must follow the name \"\(name)\".", at: reader.position)
        }
        return Member(name: name, offset: offset, node: try node(&reader, depth: depth))
    }

    private static func string(_ reader: inout JSONReader) throws(Problem) -> String {
        let offset = reader.position
        var bytes: [UInt8] = []
        guard reader.string(into: &bytes) != nil else {
            throw Problem(
                "This string has no end, or contains a line break or an escape that JSON does not allow.",
                at: offset
            )
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// The position of the first bytes that are not UTF-8; nil if all are.
    private static func firstInvalid(in bytes: [UInt8]) -> Int? {
        guard String(validating: bytes, as: UTF8.self) == nil else { return nil }
        var parser = Unicode.UTF8.ForwardParser()
        var iterator = bytes.makeIterator()
        var offset = 0
        while true {
            switch parser.parseScalar(from: &iterator) {
            case .valid(let scalar): offset += scalar.count
            case .error: return offset
            case .emptyInput: return nil
            }
        }
    }
}
