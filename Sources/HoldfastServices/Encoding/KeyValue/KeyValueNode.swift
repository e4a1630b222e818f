// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// A place in an encoded value; filled while the value encodes itself, perhaps late, by one of its nested encoders.
final class KeyValueNode {
    enum Kind {
        case vacant
        case null
        case text(String)
        /// A value that stays whole, such as a file.
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
    /// How many parts belong together that come in an order of chance: one of a set or of a dictionary, but two where a
    /// dictionary's keys are no text, which encodes as key, value, key, value. Nil where the order is the value's own.
    var chanceOrder: Int?

    /// Fills the place with a value that has no parts; a second one takes the place of the first. False where it has parts.
    func fill(_ kind: Kind) -> Bool {
        switch self.kind {
        case .list, .fields: return false
        case .vacant, .null, .text, .whole:
            self.kind = kind
            return true
        }
    }

    /// Makes this a list or an object, unless it is something else already.
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

    /// The place of a property; a second value for one name takes the place of the first.
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

    /// The place of the property, where there is one already: two containers of one object share its parts.
    func existingField(_ name: String) -> KeyValueNode? {
        index[name].map { fields[$0].node }
    }

    /// The name of the only property, where that is an object without properties.
    var nameOfEmptyField: String? {
        guard case .fields = kind, fields.count == 1, case .fields = fields[0].node.kind, fields[0].node.fields.isEmpty
        else {
            return nil
        }
        return fields[0].name
    }

    /// Makes an object a text.
    func becomeText(_ text: String) {
        (kind, fields, index) = (.text(text), [], [:])
    }

    /// The place of a further element.
    func element() -> KeyValueNode {
        let node = KeyValueNode()
        elements.append(node)
        return node
    }
}

/// What has no order of its own.
protocol UnorderedEncodable {
    /// How many elements belong together where it encodes as a list.
    static var elementsTogether: Int { get }
    /// The same elements in an order of their own; nil where they have none, so that their texts have to do.
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
