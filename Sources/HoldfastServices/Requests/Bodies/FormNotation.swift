// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// How a form writes arrays and Booleans, on which servers differ.
public struct FormNotation: Sendable, Hashable {
    /// How the values of an array are named; closed.
    public enum Arrays: Sendable, Hashable {
        /// `k[]=1&k[]=2`.
        case brackets
        /// `k=1&k=2`, as in a query.
        case noBrackets
    }

    /// How Booleans are written; closed.
    public enum Booleans: Sendable, Hashable {
        /// `true` and `false`, as in a query.
        case literal
        /// `1` and `0`.
        case numeric
    }

    /// How the values of an array are named.
    public var arrays: Arrays
    /// How Booleans are written.
    public var booleans: Booleans

    /// A notation; by default that of a query.
    public init(arrays: Arrays = .noBrackets, booleans: Booleans = .literal) {
        self.arrays = arrays
        self.booleans = booleans
    }

    /// The pairs that an argument is sent as, before percent-encoding.
    func pairs(_ item: HttpQuery.Item) -> [(name: String, value: String)] {
        var name = item.name
        if case .array = item.value, arrays == .brackets { name += "[]" }
        return item.value.leaves.map { value in
            if case .boolean(let value) = value, booleans == .numeric { return (name, value ? "1" : "0") }
            return (name, value.text)
        }
    }
}
