// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Names the parts of an encoded value.
struct KeyValueWriter {
    /// A part without parts of its own, and its name.
    struct Leaf {
        enum Content {
            case null
            case text(String)
            case whole(any Sendable)
        }

        let name: String
        let content: Content

        /// The leaf as text; nil if it is kept whole.
        var pair: KeyValueEncoder.Pair? {
            switch content {
            case .null: KeyValueEncoder.Pair(name: name, value: nil)
            case .text(let text): KeyValueEncoder.Pair(name: name, value: text)
            case .whole: nil
            }
        }
    }

    private let encoder: KeyValueEncoder

    init(_ encoder: KeyValueEncoder) {
        self.encoder = encoder
    }

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
        case .null: leaves.append(Leaf(name: name, content: .null))
        case .text(let text): leaves.append(Leaf(name: name, content: .text(text)))
        case .whole(let value): leaves.append(Leaf(name: name, content: .whole(value)))
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
        switch (element.kind, encoder.arrays.style) {
        case (.list, _), (.fields, _), (_, .indexed): "\(name)[\(index)]"
        case (_, .brackets): "\(name)[]"
        case (_, .repeated): name
        }
    }

    /// - Throws: if a property's own name would be read as a nested one; a dictionary's keys may come from outside.
    private func nested(_ property: String, in name: String) throws -> String {
        let marks = encoder.nesting.style == .brackets ? "[]" : ".[]"
        guard !property.contains(where: { marks.contains($0) }) else {
            throw EncodingError.invalidValue(
                String.self,
                EncodingError.Context(
                    codingPath: [],
                    debugDescription:
                        "A key in \(name) contains one of \(marks), so a server would read it as another name. "
                        + "Use other keys, or send it as JSON."
                )
            )
        }
        switch encoder.nesting.style {
        case .brackets: return "\(name)[\(property)]"
        case .dots: return "\(name).\(property)"
        }
    }

    private func sortingText(_ nodes: [KeyValueNode]) throws -> String {
        var leaves: [Leaf] = []
        for node in nodes { try append(node, named: "", to: &leaves) }
        return leaves.compactMap(\.pair).map { "\($0.name)=\($0.value ?? "")" }.joined(separator: "&")
    }
}
