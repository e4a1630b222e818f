// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Query arguments by name; sent sorted by name, those of one name in their own order, so that equal calls have equal URLs in
/// every process.
public struct HttpQuery: Sendable, Hashable, ExpressibleByDictionaryLiteral {
    /// One name with its value.
    struct Item: Sendable, Hashable {
        let name: String
        let value: QueryArgument
    }

    private(set) var items: [Item]

    /// No arguments.
    public init() { items = [] }

    /// Arguments by name.
    public init(_ arguments: [String: (any QueryArgumentConvertible)?]) {
        items = arguments.map { Item(name: $0.key, value: $0.value?.queryArgument ?? .undefined) }
    }

    public init(dictionaryLiteral elements: (String, (any QueryArgumentConvertible)?)...) {
        items = elements.map { Item(name: $0.0, value: $0.1?.queryArgument ?? .undefined) }
    }

    /// The arguments of both; where both have a name, the right one's value takes the place of the left one's.
    public static func + (left: HttpQuery, right: HttpQuery) -> HttpQuery {
        let names = Set(right.items.map(\.name))
        var sum = left
        sum.items.removeAll { names.contains($0.name) }
        sum.items += right.items
        return sum
    }

    /// The query as it is sent, without its question mark; empty where there is nothing to send.
    public var encoded: String {
        let pairs = items.enumerated().sorted {
            ($0.element.name, $0.offset) < ($1.element.name, $1.offset)
        }
        return pairs.flatMap { pair in
            pair.element.value.values.map { value in
                PercentCoding.encode(pair.element.name, allowing: .unreserved) + "="
                    + PercentCoding.encode(value, allowing: .unreserved)
            }
        }.joined(separator: "&")
    }
}
