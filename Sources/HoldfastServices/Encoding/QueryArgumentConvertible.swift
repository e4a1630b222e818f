// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation

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
    var ascending: [Element]? {
        (Element.self as? any Comparable.Type).flatMap { ordered(by: $0) }
    }

    private func ordered<Order: Comparable>(by order: Order.Type) -> [Element]? {
        let ordered = compactMap { $0 as? Order }.sorted().compactMap { $0 as? Element }
        return ordered.count == count ? ordered : nil
    }
}
