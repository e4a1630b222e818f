// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// A place that holds one value.
struct KeyValuePlace: SingleValueEncodingContainer {
    let encoding: KeyValueEncoding
    let node: KeyValueNode
    let codingPath: [any CodingKey]

    func encodeNil() throws { try encoding.fill(node, kind: .null, for: "null", at: codingPath) }
    func encode(_ value: Bool) throws {
        let words = encoding.encoder.booleans
        try fill(value ? words.yes : words.no)
    }
    func encode(_ value: String) throws { try fill(value) }
    func encode(_ value: Double) throws { try fill(value) { try KeyValueScalar.text(of: value) } }
    func encode(_ value: Float) throws { try fill(value) { try KeyValueScalar.text(of: value) } }
    func encode(_ value: Int) throws { try fill(value.description) }
    func encode(_ value: Int8) throws { try fill(value.description) }
    func encode(_ value: Int16) throws { try fill(value.description) }
    func encode(_ value: Int32) throws { try fill(value.description) }
    func encode(_ value: Int64) throws { try fill(value.description) }
    func encode(_ value: Int128) throws { try fill(value.description) }
    func encode(_ value: UInt) throws { try fill(value.description) }
    func encode(_ value: UInt8) throws { try fill(value.description) }
    func encode(_ value: UInt16) throws { try fill(value.description) }
    func encode(_ value: UInt32) throws { try fill(value.description) }
    func encode(_ value: UInt64) throws { try fill(value.description) }
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
        nextEncoder().container(keyedBy: type)
    }

    func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer { nextEncoder().unkeyedContainer() }
    func superEncoder() -> any Encoder { nextEncoder() }

    private func next() -> KeyValuePlace {
        let path = codingPath + [KeyValueKey(intValue: count)]
        return KeyValuePlace(encoding: encoding, node: node.element(), codingPath: path)
    }

    private func nextEncoder() -> KeyValueNodeEncoder {
        let path = codingPath + [KeyValueKey(intValue: count)]
        return KeyValueNodeEncoder(encoding: encoding, node: node.element(), codingPath: path)
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
        sharedEncoder(key).container(keyedBy: type)
    }

    func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
        sharedEncoder(key).unkeyedContainer()
    }

    func superEncoder() -> any Encoder { newEncoder(KeyValueKey(stringValue: "super")) }
    func superEncoder(forKey key: Key) -> any Encoder { newEncoder(key) }

    private func place(_ key: Key) -> KeyValuePlace {
        KeyValuePlace(encoding: encoding, node: node.field(key.stringValue), codingPath: codingPath + [key])
    }

    /// Two containers requested for the same key are the same place.
    private func sharedEncoder(_ key: Key) -> KeyValueNodeEncoder {
        let shared = node.existingField(key.stringValue) ?? node.field(key.stringValue)
        return KeyValueNodeEncoder(encoding: encoding, node: shared, codingPath: codingPath + [key])
    }

    private func newEncoder(_ key: any CodingKey) -> KeyValueNodeEncoder {
        KeyValueNodeEncoder(
            encoding: encoding,
            node: node.field(key.stringValue),
            codingPath: codingPath + [key]
        )
    }
}
