// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// A JSON value as it stands in the file: the members of a case take more than one shape.
enum JSONValue: Sendable, Hashable {
    case null
    case bool(Bool)
    case integer(Int)
    case string(String)
    case array([JSONValue])
    case object([String: JSONValue])

    var text: String? {
        if case .string(let text) = self { text } else { nil }
    }

    var number: Int? {
        if case .integer(let number) = self { number } else { nil }
    }

    var elements: [JSONValue]? {
        if case .array(let elements) = self { elements } else { nil }
    }

    var isTrue: Bool { self == .bool(true) }
    var isFalse: Bool { self == .bool(false) }

    /// A string, or an integer in decimal.
    var spelled: String? { text ?? number.map(String.init) }

    /// The elements that are strings; a lone string counts as a list of one.
    var texts: [String] {
        if let text { return [text] }
        return (elements ?? []).compactMap(\.text)
    }

    /// A member of an object; nil where it is absent, or this is no object.
    subscript(name: String) -> JSONValue? {
        if case .object(let members) = self { members[name] } else { nil }
    }
}

extension JSONValue: Decodable {
    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if let text = try? container.decode(String.self) {
            self = .string(text)
        } else if let elements = try? container.decode([JSONValue].self) {
            self = .array(elements)
        } else if let members = try? container.decode([String: JSONValue].self) {
            self = .object(members)
        } else if let truth = try? container.decode(Bool.self) {
            self = .bool(truth)
        } else if let number = try? container.decode(Int.self) {
            self = .integer(number)
        } else {
            self = .null
        }
    }
}
