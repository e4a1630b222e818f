// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// A place in an encoded value; filled while the value encodes itself, possibly late by one of its nested encoders.
final class KeyValueNode {
    enum Kind {
        case vacant
        case null
        case text(String)
        /// A value that is kept whole, such as a file.
        case whole(any Sendable)
        case list
        case fields
    }

    private(set) var kind = Kind.vacant
    /// The elements of a list.
    private(set) var elements: [KeyValueNode] = []
    /// The properties of an object.
    private(set) var fields: [(name: String, node: KeyValueNode)] = []
    private var index: [String: Int] = [:]
    /// How many elements belong together if their order is arbitrary: one in a set or a dictionary, two in a dictionary whose
    /// keys are not text, which encodes as key, value, key, value. Nil if the order is the value's own.
    var chanceOrder: Int?

    /// Fills the place with a value without parts; a second one replaces the first. False if it has parts.
    func fill(_ kind: Kind) -> Bool {
        switch self.kind {
        case .list, .fields: return false
        case .vacant, .null, .text, .whole:
            self.kind = kind
            return true
        }
    }

    /// Makes this a list or an object; false if it is something else already.
    func claim(asList: Bool) -> Bool {
        switch kind {
        case .vacant:
            kind = asList ? .list : .fields
            return true
        case .list: return asList
        case .fields: return !asList
        case .null, .text, .whole: return false
        }
    }

    /// The place of a property; a second value for the same name replaces the first.
    func field(_ name: String) -> KeyValueNode {
        let node = KeyValueNode()
        if let place = index[name] {
            fields[place].node = node
        } else {
            index[name] = fields.count
            fields.append((name, node))
        }
        return node
    }

    /// The place of the property if it exists: two containers of one object share its parts.
    func existingField(_ name: String) -> KeyValueNode? {
        index[name].map { fields[$0].node }
    }

    /// The name of the only property, if that is an object without properties.
    var nameOfEmptyField: String? {
        guard case .fields = kind, fields.count == 1, case .fields = fields[0].node.kind, fields[0].node.fields.isEmpty
        else {
            return nil
        }
        return fields[0].name
    }

    /// Turns an object into a text.
    func becomeText(_ text: String) {
        (kind, fields, index) = (.text(text), [], [:])
    }

    /// The place of one more element.
    func element() -> KeyValueNode {
        let node = KeyValueNode()
        elements.append(node)
        return node
    }
}

/// A collection without an order of its own.
protocol UnorderedEncodable {
    /// How many elements belong together when it encodes as a list.
    static var elementsTogether: Int { get }
    /// The same elements in ascending order; nil if they have no order, so that their texts are used.
    var inOrder: (any Encodable)? { get }
}

extension Dictionary: UnorderedEncodable {
    static var elementsTogether: Int { 2 }
    var inOrder: (any Encodable)? { nil }
}

extension Set: UnorderedEncodable {
    static var elementsTogether: Int { 1 }
    var inOrder: (any Encodable)? { ascending as? any Encodable }
}
