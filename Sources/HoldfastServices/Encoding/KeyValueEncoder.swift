// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation

/// Encodes any `Encodable` as ordered pairs of name and text, as queries and forms use them.
///
/// Nested values keep their structure, so no two properties can get the same name. By default a property `address.city` is
/// named `address[city]`, each element of an array of scalars `tags`, and each element of any other array by its index,
/// `lines[0][price]`. Set ``nesting`` and ``arrays`` for a server that expects something else: PHP, Rails and the `qs` parser
/// of Node want `tags[]`.
///
/// Booleans are `true` and `false`, numbers are written as JSON writes them, `Data` is Base64, a `URL` its text, a `UUID` and a
/// `Decimal` their usual text, an enum's case without associated values its name. Empty arrays and objects have no pairs.
/// Dictionaries are sorted by their keys and a `Set` in ascending order (by text if its elements have no order), so equal
/// values give equal pairs in every process. Values without a text, such as `nan`, and values that are not objects (a number, a
/// string, an array at the top) fail with `EncodingError`. So do nested keys that are empty or have brackets (or dots, if
/// these show nesting), because a server would read them as another name.
public struct KeyValueEncoder: Sendable {
    /// How a `Date` is written; as milliseconds since 1970 by default, as in ``HttpQuery``.
    public var dates: DateFormat = .millisecondsSince1970
    /// How elements of arrays of scalars are named; by default as in ``HttpQuery``, where `tags` is repeated.
    public var arrays: ArrayNaming = .repeated
    /// How the properties of nested values are named; `address[city]` by default.
    public var nesting: Nesting = .brackets
    /// How booleans are written; `true` and `false` by default.
    public var booleans: BooleanFormat = .words

    /// Creates an encoder with the defaults.
    public init() {}

    /// A name with its text.
    public struct Pair: Sendable, Hashable {
        /// The name, before percent-encoding.
        public let name: String
        /// The text, before percent-encoding; nil for null.
        public let value: String?

        /// Creates a pair.
        public init(name: String, value: String?) {
            self.name = name
            self.value = value
        }
    }

    /// The pairs of a value, in the order in which it encodes them.
    ///
    /// - Throws: `EncodingError`, or any error of the value's own `encode(to:)`.
    public func pairs(of value: some Encodable) throws -> [Pair] {
        try KeyValueWriter(encoder: self).leaves(of: tree(of: value)).compactMap(\.pair)
    }

    /// The value as a query: sorted by name, with pairs of the same name in their own order; null is a name alone.
    ///
    /// - Throws: the same as ``pairs(of:)``.
    public func query(of value: some Encodable) throws -> HttpQuery { HttpQuery(items: try items(of: value)) }

    /// The value as `application/x-www-form-urlencoded` content, in its own order; null is a name with nothing after `=`.
    ///
    /// - Throws: the same as ``pairs(of:)``.
    public func form(of value: some Encodable) throws -> HttpBody {
        .formURLEncoded(items: try items(of: value))
    }

    private func items(of value: some Encodable) throws -> [HttpQuery.Item] {
        try pairs(of: value).map { HttpQuery.Item(name: $0.name, value: $0.value.map { .text($0) } ?? .flag) }
    }

    /// The tree that a value encodes itself to.
    ///
    /// - Parameter keepingWhole: returns values that are not encoded, such as files; none by default.
    func tree(
        of value: some Encodable,
        keepingWhole: @escaping (Any) -> (any Sendable)? = { _ in nil }
    ) throws -> KeyValueNode {
        let encoding = KeyValueEncoding(self, keepingWhole: keepingWhole)
        let node = KeyValueNode()
        try encoding.encode(value, into: node, at: [])
        if let failure = encoding.failure { throw failure }
        return node
    }
}

extension KeyValueEncoder {
    /// How a `Date` is written.
    public struct DateFormat: Sendable {
        /// Nil: as `Date` encodes itself.
        let text: (@Sendable (Date) throws -> String)?

        /// As `Date` encodes itself: seconds since 2001, with their fraction.
        public static let deferredToDate = DateFormat(text: nil)
        /// Seconds since 1970, with their fraction.
        public static let secondsSince1970 = DateFormat { try KeyValueScalar.text(of: $0.timeIntervalSince1970) }
        /// Milliseconds since 1970, rounded to the nearest.
        public static let millisecondsSince1970 = DateFormat {
            try KeyValueScalar.text(of: ($0.timeIntervalSince1970 * 1_000).rounded())
        }
        /// `2026-01-31T12:00:00Z`, in UTC, without a fraction; for the years 1 to 9999.
        public static let iso8601 = DateFormat { date in
            guard KeyValueScalar.calendarYears.contains(date.timeIntervalSince1970) else {
                throw KeyValueScalar.NoText()
            }
            return date.formatted(.iso8601)
        }
        /// As a formatter writes it; do not change the formatter after this.
        public static func formatted(_ formatter: DateFormatter) -> DateFormat {
            DateFormat { formatter.string(from: $0) }
        }
        /// As a closure writes it.
        public static func custom(_ text: @escaping @Sendable (Date) throws -> String) -> DateFormat {
            DateFormat(text: text)
        }
    }

    /// How elements of arrays of scalars are named; elements with pairs of their own are always named by index.
    public struct ArrayNaming: Sendable, Hashable {
        enum Style { case brackets, repeated, indexed }
        let style: Style

        /// `tags[]`, `tags[]`: PHP, Rails, Node's `qs`.
        public static let brackets = ArrayNaming(style: .brackets)
        /// `tags`, `tags`: Java servlets, Go, ASP.NET, Python.
        public static let repeated = ArrayNaming(style: .repeated)
        /// `tags[0]`, `tags[1]`.
        public static let indexed = ArrayNaming(style: .indexed)

        /// The name of an element.
        func name(of index: Int, in name: String) -> String {
            switch style {
            case .brackets: "\(name)[]"
            case .repeated: name
            case .indexed: "\(name)[\(index)]"
            }
        }
    }

    /// How the properties of nested values are named.
    public struct Nesting: Sendable, Hashable {
        enum Style { case brackets, dots }
        let style: Style

        /// `address[city]`: PHP, Rails, Node's `qs`.
        public static let brackets = Nesting(style: .brackets)
        /// `address.city`: Spring, ASP.NET.
        public static let dots = Nesting(style: .dots)
    }

    /// How booleans are written.
    public struct BooleanFormat: Sendable, Hashable {
        let no: String
        let yes: String

        /// `true` and `false`.
        public static let words = BooleanFormat(no: "false", yes: "true")
        /// `1` and `0`.
        public static let numbers = BooleanFormat(no: "0", yes: "1")

        func text(of value: Bool) -> String { value ? yes : no }
    }
}
