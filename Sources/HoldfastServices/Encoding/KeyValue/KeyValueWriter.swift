// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Names the parts of an encoded value.
struct KeyValueWriter {
    private let encoder: KeyValueEncoder

    init(_ encoder: KeyValueEncoder) {
        self.encoder = encoder
    }

    /// The pairs of a value, which must be an object.
    func pairs(of tree: KeyValueNode) throws -> [KeyValueEncoder.Pair] {
        var pairs: [KeyValueEncoder.Pair] = []
        for (name, node) in try properties(of: tree) { append(node, named: name, to: &pairs) }
        return pairs
    }

    /// The properties of a value, which must be an object.
    func properties(of tree: KeyValueNode) throws -> [(name: String, node: KeyValueNode)] {
        switch tree.kind {
        case .vacant: return []
        case .fields: return fields(of: tree)
        case .null, .text, .whole, .list:
            throw KeyValueEncoding.error(
                "",
                [],
                "It is no object, so there is no name for it; put it into a struct, or send it as JSON."
            )
        }
    }

    /// The pairs of one part.
    func append(_ node: KeyValueNode, named name: String, to pairs: inout [KeyValueEncoder.Pair]) {
        switch node.kind {
        case .vacant, .whole: break
        case .null: pairs.append(KeyValueEncoder.Pair(name: name, value: nil))
        case .text(let text): pairs.append(KeyValueEncoder.Pair(name: name, value: text))
        case .fields:
            for (property, part) in fields(of: node) { append(part, named: nested(property, in: name), to: &pairs) }
        case .list:
            for (index, element) in elements(of: node).enumerated() {
                append(element, named: elementName(element, index, in: name), to: &pairs)
            }
        }
    }

    /// The elements of a list.
    func elements(of node: KeyValueNode) -> [KeyValueNode] {
        guard let together = node.chanceOrder else { return node.elements }
        let groups = stride(from: 0, to: node.elements.count, by: together).map { start in
            Array(node.elements[start...].prefix(together))
        }
        return groups.map { ($0, sortingText($0)) }.sorted { $0.1 < $1.1 }.flatMap(\.0)
    }

    func elementName(_ element: KeyValueNode, _ index: Int, in name: String) -> String {
        switch (element.kind, encoder.arrays.style) {
        case (.list, _), (.fields, _), (_, .indexed): "\(name)[\(index)]"
        case (_, .brackets): "\(name)[]"
        case (_, .repeated): name
        }
    }

    private func fields(of node: KeyValueNode) -> [(name: String, node: KeyValueNode)] {
        node.chanceOrder == nil ? node.fields : node.fields.sorted { $0.name < $1.name }
    }

    private func nested(_ property: String, in name: String) -> String {
        switch encoder.nesting.style {
        case .brackets: "\(name)[\(property)]"
        case .dots: "\(name).\(property)"
        }
    }

    private func sortingText(_ nodes: [KeyValueNode]) -> String {
        var pairs: [KeyValueEncoder.Pair] = []
        for node in nodes { append(node, named: "", to: &pairs) }
        return pairs.map { "\($0.name)=\($0.value ?? "")" }.joined(separator: "&")
    }
}
