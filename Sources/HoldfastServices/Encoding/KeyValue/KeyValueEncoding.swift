// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation

/// One encoding under way: what its nested encoders share.
package final class KeyValueEncoding {
    /// Deeper values are refused, as one that contains itself would overflow the stack.
    static let depthLimit = 100

    let encoder: KeyValueEncoder
    /// Takes values out of the encoding that stay whole.
    let keepingWhole: (Any) -> (any Sendable)?
    /// What went wrong where nothing could be thrown; the first stays.
    private(set) var failure: EncodingError?
    private var depth = 0
    /// Whether what has no text is let pass, as where only the shape is looked at.
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
                reason: "It lies deeper than \(KeyValueEncoding.depthLimit) levels, or contains itself."
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
        // A case without associated values encodes as an object that has nothing but its name, and would leave no trace.
        if !path.isEmpty, let name = node.nameOfEmptyField, Mirror(reflecting: value).displayStyle == .enum {
            node.becomeText(name)
        }
    }

    func fill(_ node: KeyValueNode, kind: KeyValueNode.Kind, for value: Any, at path: [any CodingKey]) throws {
        guard node.fill(kind) else {
            throw KeyValueEncoding.error(
                value,
                path: path,
                reason: "It was asked to be an object or a list, and a value besides."
            )
        }
    }

    /// Makes a place a list or an object; where it is something else already the encoding fails at its end, and what is written
    /// meanwhile goes to a place that nobody reads.
    func claimed(_ node: KeyValueNode, asList: Bool, at path: [any CodingKey]) -> KeyValueNode {
        let isTooDeep = path.count > KeyValueEncoding.depthLimit * 2
        if !isTooDeep, node.claim(asList: asList) { return node }
        let reason =
            isTooDeep
            ? "It lies deeper than \(KeyValueEncoding.depthLimit * 2) levels."
            : "It was asked to be two of: an object, a list, a value."
        failure = failure ?? KeyValueEncoding.error(path.last?.stringValue ?? "", path: path, reason: reason)
        let unread = KeyValueNode()
        _ = unread.claim(asList: asList)
        return unread
    }

    /// Runs what makes a text, and says where it was where there is none.
    func text(at path: [any CodingKey], of value: Any, _ make: () throws -> String?) throws -> String? {
        do {
            return try make()
        } catch is KeyValueScalar.NoText {
            if looksAtShapeAlone { return "" }
            throw KeyValueEncoding.error(value, path: path, reason: "It has no text that a server could read.")
        }
    }

    private func text(of value: Any, at path: [any CodingKey]) throws -> String? {
        try text(at: path, of: value) { try KeyValueScalar.text(of: value, by: encoder) }
    }

    /// Fails where a value is neither object nor list, contains itself, or contradicts itself: what coders of other formats may
    /// end the process for.
    package static func checkShape(of value: some Encodable) throws {
        let encoding = KeyValueEncoding(KeyValueEncoder(), looksAtShapeAlone: true)
        let node = KeyValueNode()
        try encoding.encode(value, into: node, at: [])
        if let failure = encoding.failure { throw failure }
        switch node.kind {
        case .vacant, .list, .fields: break
        case .null, .text, .whole: throw error(value, path: [], reason: "It has no parts; put it into a struct.")
        }
    }

    /// Names the value's type and not the value, which may be a secret, and which need not be printable: an extreme `Date` traps.
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

/// What a value encodes itself to.
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

/// The key of an element, and of what stands for a superclass.
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
