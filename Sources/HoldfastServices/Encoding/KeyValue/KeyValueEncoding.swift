// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation

/// One encoding in progress, shared by its nested encoders.
package final class KeyValueEncoding {
    /// Deeper values are rejected, because one that contains itself would overflow the stack.
    static let depthLimit = 100

    let encoder: KeyValueEncoder
    /// Returns values that are not encoded but kept whole.
    let keepingWhole: (Any) -> (any Sendable)?
    /// The first error that could not be thrown where it occurred.
    private(set) var failure: EncodingError?
    private var depth = 0
    /// Whether a value without a text is accepted, because only the shape is checked.
    private let looksAtShapeAlone: Bool

    init(
        _ encoder: KeyValueEncoder,
        looksAtShapeAlone: Bool = false,
        keepingWhole: @escaping (Any) -> (any Sendable)? = { _ in nil }
    ) {
        self.encoder = encoder
        self.looksAtShapeAlone = looksAtShapeAlone
        self.keepingWhole = keepingWhole
    }

    func encode<Value: Encodable>(_ value: Value, into node: KeyValueNode, at path: [any CodingKey]) throws {
        guard depth < KeyValueEncoding.depthLimit else {
            throw KeyValueEncoding.error(
                value,
                path: path,
                reason: "It is nested deeper than \(KeyValueEncoding.depthLimit) levels, or contains itself."
            )
        }
        depth += 1
        defer { depth -= 1 }
        if let whole = keepingWhole(value) { return try fill(node, kind: .whole(whole), for: value, at: path) }
        if let text = try text(of: value, at: path) { return try fill(node, kind: .text(text), for: value, at: path) }
        if let unordered = value as? any UnorderedEncodable {
            if let ordered = unordered.inOrder { return try encode(ordered, into: node, at: path) }
            node.chanceOrder = type(of: unordered).elementsTogether
        }
        try value.encode(to: KeyValueNodeEncoder(encoding: self, node: node, codingPath: path))
        // A case without associated values encodes as an object that contains only its name, and would leave nothing.
        if !path.isEmpty, let name = node.nameOfEmptyField, Mirror(reflecting: value).displayStyle == .enum {
            node.becomeText(name)
        }
    }

    func fill(_ node: KeyValueNode, kind: KeyValueNode.Kind, for value: Any, at path: [any CodingKey]) throws {
        guard node.fill(kind) else {
            throw KeyValueEncoding.error(
                value,
                path: path,
                reason: "It encodes itself both as an object or a list and as a single value."
            )
        }
    }

    /// Makes a place a list or an object. If it is something else already, the encoding fails at the end, and what is written
    /// until then goes to an unused place.
    func claimed(_ node: KeyValueNode, asList: Bool, at path: [any CodingKey]) -> KeyValueNode {
        let isTooDeep = path.count > KeyValueEncoding.depthLimit * 2
        if !isTooDeep, node.claim(asList: asList) { return node }
        let reason =
            isTooDeep
            ? "It is nested deeper than \(KeyValueEncoding.depthLimit * 2) levels."
            : "It encodes itself as more than one of these: an object, a list, a single value."
        failure = failure ?? KeyValueEncoding.error(path.last?.stringValue ?? "", path: path, reason: reason)
        let unread = KeyValueNode()
        _ = unread.claim(asList: asList)
        return unread
    }

    /// Makes a text, and throws an error with the path if there is none.
    func text(at path: [any CodingKey], of value: Any, _ make: () throws -> String?) throws -> String? {
        do {
            return try make()
        } catch is KeyValueScalar.NoText {
            if looksAtShapeAlone { return "" }
            throw KeyValueEncoding.error(value, path: path, reason: "It has no representation as text.")
        }
    }

    private func text(of value: Any, at path: [any CodingKey]) throws -> String? {
        try text(at: path, of: value) { try KeyValueScalar.text(of: value, by: encoder) }
    }

    /// Throws if a value is neither an object nor a list, contains itself, or contradicts itself, because coders of other
    /// formats may stop the process for that.
    package static func checkShape(of value: some Encodable) throws {
        let encoding = KeyValueEncoding(KeyValueEncoder(), looksAtShapeAlone: true)
        let node = KeyValueNode()
        try encoding.encode(value, into: node, at: [])
        if let failure = encoding.failure { throw failure }
        switch node.kind {
        case .vacant, .list, .fields: break
        case .null, .text, .whole:
            throw error(value, path: [], reason: "It is not an object or a list; put it into a struct.")
        }
    }

    /// Names the value's type and not the value, which may be a secret or not printable: an extreme `Date` traps.
    static func error(_ value: Any, path: [any CodingKey], reason: String) -> EncodingError {
        let name = path.isEmpty ? "The value" : path.map(\.stringValue).joined(separator: ".")
        return .invalidValue(
            type(of: value),
            EncodingError.Context(
                codingPath: path,
                debugDescription: "\(name) cannot be encoded as names and texts. \(reason)"
            )
        )
    }
}

/// The encoder that values are given.
struct KeyValueNodeEncoder: Encoder {
    let encoding: KeyValueEncoding
    let node: KeyValueNode
    let codingPath: [any CodingKey]
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        KeyedEncodingContainer(
            KeyValueFields<Key>(
                encoding: encoding,
                node: encoding.claimed(node, asList: false, at: codingPath),
                codingPath: codingPath
            )
        )
    }

    func unkeyedContainer() -> any UnkeyedEncodingContainer {
        KeyValueElements(
            encoding: encoding,
            node: encoding.claimed(node, asList: true, at: codingPath),
            codingPath: codingPath
        )
    }

    func singleValueContainer() -> any SingleValueEncodingContainer {
        KeyValuePlace(encoding: encoding, node: node, codingPath: codingPath)
    }
}

/// The key of an element, or of a superclass.
struct KeyValueKey: CodingKey {
    let stringValue: String
    let intValue: Int?

    init(stringValue: String) {
        self.stringValue = stringValue
        intValue = nil
    }

    init(intValue: Int) {
        stringValue = "\(intValue)"
        self.intValue = intValue
    }
}
