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
    func existingField(_ name: String) -> KeyValueNode? { index[name].map { fields[$0].node } }

    /// The name of the only property, if that is an object without properties.
    var nameOfEmptyField: String? {
        guard case .fields = kind, fields.count == 1, case .fields = fields[0].node.kind, fields[0].node.fields.isEmpty
        else {
            return nil
        }
        return fields[0].name
    }

    /// Turns an object into a text.
    func becomeText(_ text: String) { (kind, fields, index) = (.text(text), [], [:]) }

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

/// Names the parts of an encoded value.
struct KeyValueWriter {
    /// A part without parts of its own, and its name.
    struct Leaf {
        let name: String
        let content: KeyValueNode.Kind

        /// The leaf as text; nil if it is kept whole.
        var pair: KeyValueEncoder.Pair? {
            switch content {
            case .null: KeyValueEncoder.Pair(name: name, value: nil)
            case .text(let text): KeyValueEncoder.Pair(name: name, value: text)
            case .vacant, .whole, .list, .fields: nil
            }
        }
    }

    let encoder: KeyValueEncoder

    /// The leaves of a value, which must be an object.
    func leaves(of tree: KeyValueNode) throws -> [Leaf] {
        var leaves: [Leaf] = []
        switch tree.kind {
        case .vacant: break
        case .fields:
            for (name, node) in fields(of: tree) { try append(node, named: name, to: &leaves) }
        case .null, .text, .whole, .list:
            throw KeyValueEncoding.error(
                tree,
                path: [],
                reason: "It is not an object, so it has no name. Put it into a struct, or send it as JSON."
            )
        }
        return leaves
    }

    private func append(_ node: KeyValueNode, named name: String, to leaves: inout [Leaf]) throws {
        switch node.kind {
        case .vacant: break
        case .null, .text, .whole: leaves.append(Leaf(name: name, content: node.kind))
        case .fields:
            for (property, part) in fields(of: node) {
                try append(part, named: nested(property, in: name), to: &leaves)
            }
        case .list:
            for (index, element) in try elements(of: node).enumerated() {
                try append(element, named: elementName(element, index: index, in: name), to: &leaves)
            }
        }
    }

    private func fields(of node: KeyValueNode) -> [(name: String, node: KeyValueNode)] {
        node.chanceOrder == nil ? node.fields : node.fields.sorted { $0.name < $1.name }
    }

    private func elements(of node: KeyValueNode) throws -> [KeyValueNode] {
        guard let together = node.chanceOrder else { return node.elements }
        let groups = stride(from: 0, to: node.elements.count, by: together).map { start in
            Array(node.elements[start...].prefix(together))
        }
        return try groups.map { ($0, try sortingText($0)) }.sorted { $0.1.utf8.lexicographicallyPrecedes($1.1.utf8) }
            .flatMap(\.0)
    }

    private func elementName(_ element: KeyValueNode, index: Int, in name: String) -> String {
        switch element.kind {
        case .list, .fields: KeyValueEncoder.ArrayNaming.indexed.name(of: index, in: name)
        case .vacant, .null, .text, .whole: encoder.arrays.name(of: index, in: name)
        }
    }

    /// - Throws: if a property's own name would be read as a nested one; a dictionary's keys may come from outside.
    private func nested(_ property: String, in name: String) throws -> String {
        let isInBrackets = encoder.nesting.style == .brackets
        let marks = isInBrackets ? "[]" : ".[]"
        // By bytes: an accent behind a bracket makes one Character of both.
        guard !property.isEmpty, !property.utf8.contains(where: { marks.utf8.contains($0) }) else {
            throw EncodingError.invalidValue(
                String.self,
                EncodingError.Context(
                    codingPath: [],
                    debugDescription:
                        "A key in \(name) is empty or contains one of \(marks), so a server would read it as another "
                        + "name. Use other keys, or send it as JSON."
                )
            )
        }
        return isInBrackets ? "\(name)[\(property)]" : "\(name).\(property)"
    }

    private func sortingText(_ nodes: [KeyValueNode]) throws -> String {
        var leaves: [Leaf] = []
        for node in nodes { try append(node, named: "", to: &leaves) }
        return leaves.compactMap(\.pair).map { "\($0.name)=\($0.value ?? "")" }.joined(separator: "&")
    }
}
