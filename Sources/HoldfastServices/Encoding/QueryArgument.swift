// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation

/// The value of a query argument; closed.
///
/// A literal of text, a number, `true`, `nil` for ``undefined``, or an array of them can be used for this type. Numbers are
/// kept as the text that is sent.
public enum QueryArgument: Sendable, Hashable {
    /// Text, unchanged.
    case text(String)
    /// `true` or `false`; a form may send 1 and 0 instead.
    case boolean(Bool)
    /// A date, sent as whole milliseconds since 1970, rounded to the nearest.
    ///
    /// A date beyond 64 bits is sent as the nearest that fits; one that is not a number is left out.
    case date(Date)
    /// Several values of one name, in this order. Nested arrays are flattened, and an empty one is left out.
    case array([QueryArgument])
    /// The name alone, without "="; an empty value in a form, which has no such notation.
    case flag
    /// Left out, also in an array.
    case undefined

    /// Creates several values of one name, of several types; nil is left out.
    public init(_ elements: [(any QueryArgumentConvertible)?]) {
        self = .array(elements.map { $0?.queryArgument ?? .undefined })
    }

    /// The values as sent, before percent-encoding; a flag's is empty.
    public var values: [String] { leaves.map(\.text) }

    /// The values that are sent, one by one, with neither arrays nor undefined.
    var leaves: [QueryArgument] {
        switch self {
        case .text, .boolean, .flag: [self]
        case .date(let date): QueryArgument.milliseconds(date) == nil ? [] : [self]
        case .array(let elements): elements.flatMap(\.leaves)
        case .undefined: []
        }
    }

    /// The text of one value; empty if it is not one.
    var text: String {
        switch self {
        case .text(let text): text
        case .boolean(let value): value ? "true" : "false"
        case .date(let date): QueryArgument.milliseconds(date).map(String.init) ?? ""
        case .array, .flag, .undefined: ""
        }
    }

    /// Milliseconds since 1970; nil if it is not a number.
    private static func milliseconds(_ date: Date) -> Int64? {
        // Rounded, not truncated: a Date counts from 2001, so whole milliseconds far from there are off by some billionths.
        let milliseconds = (date.timeIntervalSince1970 * 1000).rounded()
        guard !milliseconds.isNaN else { return nil }
        return Int64(exactly: milliseconds) ?? (milliseconds < 0 ? .min : .max)
    }
}

extension QueryArgument: ExpressibleByStringInterpolation, ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral,
    ExpressibleByBooleanLiteral, ExpressibleByArrayLiteral, ExpressibleByNilLiteral
{
    public init(stringLiteral value: String) { self = .text(value) }

    public init(integerLiteral value: Int) { self = value.queryArgument }

    public init(floatLiteral value: Double) { self = value.queryArgument }

    public init(booleanLiteral value: Bool) { self = .boolean(value) }

    public init(arrayLiteral elements: QueryArgument...) { self = .array(elements) }

    public init(nilLiteral: ()) { self = .undefined }
}

/// A type whose values can be query arguments.
///
/// A `CustomStringConvertible` type can conform without any code, and so can an enum with raw values, which sends its raw
/// value. Floating-point numbers are sent as Swift describes them, with the shortest text that reads back as the same number:
/// `1.0`, `2.5`, `1e+16`, and `inf`, `-inf`, `nan`.
public protocol QueryArgumentConvertible: Sendable {
    /// The value.
    var queryArgument: QueryArgument { get }
}

extension QueryArgumentConvertible where Self: CustomStringConvertible {
    public var queryArgument: QueryArgument { .text(description) }
}

extension QueryArgumentConvertible where Self: RawRepresentable, RawValue: QueryArgumentConvertible {
    public var queryArgument: QueryArgument { rawValue.queryArgument }
}

// Without this, an enum that also describes itself would have two ambiguous defaults.
extension QueryArgumentConvertible
where Self: RawRepresentable & CustomStringConvertible, RawValue: QueryArgumentConvertible {
    public var queryArgument: QueryArgument { rawValue.queryArgument }
}

extension QueryArgument: QueryArgumentConvertible {
    public var queryArgument: QueryArgument { self }
}

extension String: QueryArgumentConvertible {}
extension Substring: QueryArgumentConvertible {}
extension Character: QueryArgumentConvertible {}

extension Int: QueryArgumentConvertible {}
extension Int8: QueryArgumentConvertible {}
extension Int16: QueryArgumentConvertible {}
extension Int32: QueryArgumentConvertible {}
extension Int64: QueryArgumentConvertible {}
extension Int128: QueryArgumentConvertible {}
extension UInt: QueryArgumentConvertible {}
extension UInt8: QueryArgumentConvertible {}
extension UInt16: QueryArgumentConvertible {}
extension UInt32: QueryArgumentConvertible {}
extension UInt64: QueryArgumentConvertible {}
extension UInt128: QueryArgumentConvertible {}

extension Double: QueryArgumentConvertible {}
extension Float: QueryArgumentConvertible {}
extension Decimal: QueryArgumentConvertible {}

extension UUID: QueryArgumentConvertible {}

extension Bool: QueryArgumentConvertible {
    public var queryArgument: QueryArgument { .boolean(self) }
}

extension Date: QueryArgumentConvertible {
    public var queryArgument: QueryArgument { .date(self) }
}

extension URL: QueryArgumentConvertible {
    public var queryArgument: QueryArgument { .text(absoluteString) }
}

extension Optional: QueryArgumentConvertible where Wrapped: QueryArgumentConvertible {
    /// The wrapped value's, at any depth; nil is left out.
    public var queryArgument: QueryArgument { self?.queryArgument ?? .undefined }
}

extension Array: QueryArgumentConvertible where Element: QueryArgumentConvertible {
    public var queryArgument: QueryArgument { .array(map(\.queryArgument)) }
}

extension ArraySlice: QueryArgumentConvertible where Element: QueryArgumentConvertible {
    public var queryArgument: QueryArgument { .array(map(\.queryArgument)) }
}

extension ContiguousArray: QueryArgumentConvertible where Element: QueryArgumentConvertible {
    public var queryArgument: QueryArgument { .array(map(\.queryArgument)) }
}

extension Set: QueryArgumentConvertible where Element: QueryArgumentConvertible {
    /// The elements in ascending order if they have one, otherwise ordered by the bytes of their texts; the same in every
    /// process.
    public var queryArgument: QueryArgument {
        let elements =
            ascending
            ?? sorted { first, second in
                first.queryArgument.values.lexicographicallyPrecedes(second.queryArgument.values) {
                    $0.utf8.lexicographicallyPrecedes($1.utf8)
                }
            }
        return .array(elements.map(\.queryArgument))
    }
}

extension Set {
    /// The elements in ascending order; nil if they have no order.
    var ascending: [Element]? { (Element.self as? any Comparable.Type).flatMap { ordered(by: $0) } }

    private func ordered<Order: Comparable>(by order: Order.Type) -> [Element]? {
        let ordered = compactMap { $0 as? Order }.sorted().compactMap { $0 as? Element }
        return ordered.count == count ? ordered : nil
    }
}
