// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics

/// From which exchanges an answer was made, by the marks that it bears.
struct AdmissionEvidence {
    /// The cells of the body: of which exchange, and which of the representation.
    private(set) var cells: [(exchange: Int, index: Int)] = []
    /// The fields that bear a mark, and whose.
    private(set) var fields: [(name: FieldName, exchange: Int)] = []
    /// Whether the body is not a row of cells.
    private(set) var isGarbled = false

    init(_ call: AdmissionCall) {
        readCells(of: call.body, isBroken: call.isBroken)
        for line in call.fields {
            let value = line.value
            let mark: Substring? =
                switch line.name {
                case "X-Stamp", "Content-MD5": value[...]
                case "Set-Cookie": value.split(separator: ".").last
                case "Repr-Digest", "Content-Digest": value.split(separator: ":").last
                case "Cache-Control": value.split(separator: "=").last
                default: nil
                }
            if let mark, let number = Int(mark) { fields.append((line.name, number)) }
        }
    }

    var bodies: Set<Int> { Set(cells.map(\.exchange)) }
    var all: Set<Int> { bodies.union(fields.map(\.exchange)) }

    /// Whose field it is.
    func exchange(of name: FieldName) -> Int? { fields.first { $0.name == name }?.exchange }

    private mutating func readCells(of body: String, isBroken: Bool) {
        for cell in body.split(separator: ";") {
            let numbers = cell.dropFirst().split(separator: "c")
            guard cell.utf8.count == AdmissionOrigin.cellSize - 1, numbers.count == 2,
                let exchange = Int(numbers[0]), let index = Int(numbers[1])
            else {
                isGarbled = true
                return
            }
            cells.append((exchange, index))
        }
    }
}

/// The directives of a Cache-Control field, read as naively as the origin writes them.
struct AdmissionDirectives {
    private var values: [String: String] = [:]

    init(_ text: String?) {
        for member in (text ?? "").split(separator: ",") {
            let parts = member.drop { $0 == " " }.split(separator: "=", maxSplits: 1)
            guard let name = parts.first else { continue }
            values[String(name)] = parts.count > 1 ? String(parts[1]) : ""
        }
    }

    func has(_ name: String) -> Bool { values[name] == "" }
    func seconds(_ name: String) -> Int64? { values[name].flatMap { Int64($0) } }
    /// Whether the directive is qualified with this field.
    func names(_ field: String, in directive: String) -> Bool { values[directive] == "\"\(field)\"" }
}
