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
        try value.encode(to: KeyValuePlace(encoding: self, node: node, codingPath: path))
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

/// A key of any name: that of an element, of a superclass, or one that a program chose.
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

/// A place for one value, and the encoder that the value is given.
struct KeyValuePlace: Encoder, SingleValueEncodingContainer {
    let encoding: KeyValueEncoding
    let node: KeyValueNode
    let codingPath: [any CodingKey]
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        let object = encoding.claimed(node, asList: false, at: codingPath)
        return KeyedEncodingContainer(KeyValueFields<Key>(encoding: encoding, node: object, codingPath: codingPath))
    }

    func unkeyedContainer() -> any UnkeyedEncodingContainer {
        let list = encoding.claimed(node, asList: true, at: codingPath)
        return KeyValueElements(encoding: encoding, node: list, codingPath: codingPath)
    }

    func singleValueContainer() -> any SingleValueEncodingContainer { self }

    func encodeNil() throws { try encoding.fill(node, kind: .null, for: "null", at: codingPath) }
    func encode(_ value: Bool) throws { try fill(encoding.encoder.booleans.text(of: value)) }
    func encode(_ value: String) throws { try fill(value) }
    func encode(_ value: Double) throws { try fill(value) { try KeyValueScalar.text(of: value) } }
    func encode(_ value: Float) throws { try fill(value) { try KeyValueScalar.text(of: value) } }
    func encode<Value: Encodable & FixedWidthInteger>(_ value: Value) throws { try fill(value.description) }
    func encode(_ value: Int128) throws { try fill(value.description) }
    func encode(_ value: UInt128) throws { try fill(value.description) }
    func encode<Value: Encodable>(_ value: Value) throws { try encoding.encode(value, into: node, at: codingPath) }

    private func fill(_ text: String) throws {
        try encoding.fill(node, kind: .text(text), for: text, at: codingPath)
    }

    private func fill(_ value: Any, make: () throws -> String) throws {
        guard let text = try encoding.text(at: codingPath, of: value, make) else { return }
        try fill(text)
    }
}

/// The elements of a list.
struct KeyValueElements: UnkeyedEncodingContainer {
    let encoding: KeyValueEncoding
    let node: KeyValueNode
    let codingPath: [any CodingKey]
    var count: Int { node.elements.count }

    func encodeNil() throws { try next().encodeNil() }
    func encode<Value: Encodable>(_ value: Value) throws { try next().encode(value) }
    // Without these two, the standard library's versions, which throw, would be preferred to the generic one.
    func encode(_ value: Int128) throws { try next().encode(value) }
    func encode(_ value: UInt128) throws { try next().encode(value) }

    func nestedContainer<Nested: CodingKey>(keyedBy type: Nested.Type) -> KeyedEncodingContainer<Nested> {
        next().container(keyedBy: type)
    }

    func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer { next().unkeyedContainer() }
    func superEncoder() -> any Encoder { next() }

    private func next() -> KeyValuePlace {
        let path = codingPath + [KeyValueKey(intValue: count)]
        return KeyValuePlace(encoding: encoding, node: node.element(), codingPath: path)
    }
}

/// The properties of an object.
struct KeyValueFields<Key: CodingKey>: KeyedEncodingContainerProtocol {
    let encoding: KeyValueEncoding
    let node: KeyValueNode
    let codingPath: [any CodingKey]

    func encodeNil(forKey key: Key) throws { try place(key).encodeNil() }
    func encode<Value: Encodable>(_ value: Value, forKey key: Key) throws { try place(key).encode(value) }
    func encode(_ value: Int128, forKey key: Key) throws { try place(key).encode(value) }
    func encode(_ value: UInt128, forKey key: Key) throws { try place(key).encode(value) }

    func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type,
        forKey key: Key
    ) -> KeyedEncodingContainer<Nested> {
        sharedPlace(key).container(keyedBy: type)
    }

    func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
        sharedPlace(key).unkeyedContainer()
    }

    func superEncoder() -> any Encoder { place(KeyValueKey(stringValue: "super")) }
    func superEncoder(forKey key: Key) -> any Encoder { place(key) }

    private func place(_ key: any CodingKey) -> KeyValuePlace {
        KeyValuePlace(encoding: encoding, node: node.field(key.stringValue), codingPath: codingPath + [key])
    }

    /// Two containers requested for the same key are the same place.
    private func sharedPlace(_ key: Key) -> KeyValuePlace {
        guard let shared = node.existingField(key.stringValue) else { return place(key) }
        return KeyValuePlace(encoding: encoding, node: shared, codingPath: codingPath + [key])
    }
}

/// The text of values without parts.
enum KeyValueScalar {
    /// The value has no text.
    struct NoText: Error {}

    /// The seconds since 1970 of the years 1 to 9999.
    static let calendarYears = -62_135_596_800.0..<253_402_300_800.0

    /// A number as in JSON: whole ones without a point, and the shortest text that reads back as the same number.
    static func text<Number: BinaryFloatingPoint & CustomStringConvertible>(of number: Number) throws -> String {
        guard number.isFinite else { throw NoText() }
        let text = number.description
        return text.hasSuffix(".0") ? String(text.dropLast(2)) : text
    }

    /// The text of Foundation types that encode themselves as something forms do not have; nil for any other type.
    static func text(of value: Any, by encoder: KeyValueEncoder) throws -> String? {
        switch value {
        case let date as Date: try encoder.dates.text?(date)
        case let data as Data: data.base64EncodedString()
        case let url as URL: url.absoluteString
        case let uuid as UUID: uuid.uuidString
        case let decimal as Decimal: try text(of: decimal)
        default: nil
        }
    }

    private static func text(of decimal: Decimal) throws -> String {
        guard decimal.isFinite else { throw NoText() }
        return decimal.description
    }
}
