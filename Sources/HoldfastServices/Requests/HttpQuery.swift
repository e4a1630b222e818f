// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Holdfast

/// Query arguments, sorted by the bytes of their names as they are sent; those of one name keep their order. So equal calls
/// have equal URLs in every process.
public struct HttpQuery: Sendable, Hashable, ExpressibleByDictionaryLiteral {
    /// One argument.
    public struct Item: Sendable, Hashable {
        /// Its name, before percent-encoding.
        public let name: String
        /// Its value.
        public let value: QueryArgument

        /// An argument.
        public init(name: String, value: QueryArgument) {
            self.name = name
            self.value = value
        }
    }

    /// The arguments, sorted, including those that are left out when the query is sent.
    public private(set) var items: [Item]

    /// No arguments.
    public init() { items = [] }

    /// These arguments; a name may repeat.
    public init(items: [Item]) { self.items = HttpQuery.sorted(items) }

    /// Arguments by name; nil is left out.
    public init(_ arguments: [String: (any QueryArgumentConvertible)?]) {
        self.init(items: arguments.map { Item(name: $0.key, value: $0.value?.queryArgument ?? .undefined) })
    }

    /// Arguments by name; nil is left out, and a name may repeat.
    public init(dictionaryLiteral elements: (String, (any QueryArgumentConvertible)?)...) {
        self.init(items: elements.map { Item(name: $0.0, value: $0.1?.queryArgument ?? .undefined) })
    }

    /// Reads a query as servers do, which take "+" for a space; a name without "=" becomes a flag.
    ///
    /// - Parameter encoded: a query without its question mark, or a form.
    public init(encoded: String) {
        let items = encoded.utf8.split(separator: UInt8(ascii: "&")).map { pair in
            let name = PercentCoding.decode(pair.prefix { $0 != UInt8(ascii: "=") }, plusIsSpace: true)
            guard let divider = pair.firstIndex(of: UInt8(ascii: "=")) else { return Item(name: name, value: .flag) }
            let value = PercentCoding.decode(pair[pair.index(after: divider)...], plusIsSpace: true)
            return Item(name: name, value: .text(value))
        }
        self.init(items: items)
    }

    /// The value of a name: an array if it has several, nil if it has none. Setting it replaces all of them.
    public subscript(name: String) -> QueryArgument? {
        get {
            let values = items.filter { $0.name == name }.map(\.value)
            return values.count > 1 ? .array(values) : values.first
        }
        set {
            let others = items.filter { $0.name != name }
            items = HttpQuery.sorted(others + (newValue.map { [Item(name: name, value: $0)] } ?? []))
        }
    }

    /// The arguments of both; if both have a name, the right one's value replaces the left one's.
    public static func + (left: HttpQuery, right: HttpQuery) -> HttpQuery {
        let names = Set(right.items.map(\.name))
        return HttpQuery(items: left.items.filter { !names.contains($0.name) } + right.items)
    }

    /// Whether there is nothing to send.
    public var isEmpty: Bool { items.allSatisfy { $0.value.leaves.isEmpty } }

    /// Whether each argument has a name, which is required.
    public var isValid: Bool { items.allSatisfy { !$0.name.isEmpty } }

    /// The query as it is sent, without its question mark; empty if there is nothing to send.
    ///
    /// All characters except unreserved ones (RFC 3986 §2.3) are percent-encoded, "+" as %2B and a space as %20, so that all
    /// servers read the same.
    ///
    /// - Throws: `ServiceError` `.badRequest` if an argument has no name.
    public var encoded: String {
        get throws {
            try namedItems.flatMap { item in
                let name = PercentCoding.encode(item.name, allowing: .unreserved)
                return item.value.leaves.map { value in
                    value == .flag ? name : name + "=" + PercentCoding.encode(value.text, allowing: .unreserved)
                }
            }.joined(separator: "&")
        }
    }

    /// The arguments, each of which has a name.
    var namedItems: [Item] {
        get throws {
            guard isValid else {
                throw ServiceError.badRequest("An argument has an empty name. Give it a name, or leave it out.")
            }
            return items
        }
    }

    private static func sorted(_ items: [Item]) -> [Item] {
        items.enumerated().sorted { first, second in
            let names = (first.element.name.utf8, second.element.name.utf8)
            if names.0.elementsEqual(names.1) { return first.offset < second.offset }
            return names.0.lexicographicallyPrecedes(names.1)
        }.map(\.element)
    }
}
