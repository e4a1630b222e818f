// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation

/// The value of a query argument; closed.
///
/// A literal makes one wherever this type is wanted: text, numbers, `true`, `nil` for ``undefined``, and arrays of them.
/// Numbers are text from the start: what is sent is all there is to them.
public enum QueryArgument: Sendable, Hashable {
    /// Text, as it is.
    case text(String)
    /// `true` or `false`; a form may send 1 and 0 instead.
    case boolean(Bool)
    /// An instant, sent as whole milliseconds since the beginning of 1970, rounded to the nearest.
    ///
    /// One beyond 64 bits is sent as the nearest that fits; one that is no number is left out.
    case date(Date)
    /// Several values of one name, in this order. Arrays in arrays are flattened, and an empty one is left out.
    case array([QueryArgument])
    /// The name alone, without "="; as an empty value where a form cannot say that.
    case flag
    /// Left out, also from within an array.
    case undefined

    /// Several values of one name, of several types; nil is left out.
    public init(_ elements: [(any QueryArgumentConvertible)?]) {
        self = .array(elements.map { $0?.queryArgument ?? .undefined })
    }

    /// The values as they are sent, before percent-encoding; a flag's is empty.
    public var values: [String] {
        leaves.map(\.text)
    }

    /// The values that are sent, one by one: neither array nor undefined.
    var leaves: [QueryArgument] {
        switch self {
        case .text, .boolean, .flag: [self]
        case .date(let date): QueryArgument.milliseconds(date) == nil ? [] : [self]
        case .array(let elements): elements.flatMap(\.leaves)
        case .undefined: []
        }
    }

    /// The text of one value; empty for what is none.
    var text: String {
        switch self {
        case .text(let text): text
        case .boolean(let value): value ? "true" : "false"
        case .date(let date): QueryArgument.milliseconds(date).map(String.init) ?? ""
        case .array, .flag, .undefined: ""
        }
    }

    /// Milliseconds since 1970; nil for what is no number.
    private static func milliseconds(_ date: Date) -> Int64? {
        // Rounded, not cut: a Date counts from 2001, so whole milliseconds far from there are off by some billionths.
        let milliseconds = (date.timeIntervalSince1970 * 1000).rounded()
        guard !milliseconds.isNaN else { return nil }
        return Int64(exactly: milliseconds) ?? (milliseconds < 0 ? .min : .max)
    }
}

extension QueryArgument: ExpressibleByStringInterpolation, ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral,
    ExpressibleByBooleanLiteral, ExpressibleByArrayLiteral, ExpressibleByNilLiteral
{
    public init(stringLiteral value: String) {
        self = .text(value)
    }

    public init(integerLiteral value: Int) {
        self = value.queryArgument
    }

    public init(floatLiteral value: Double) {
        self = value.queryArgument
    }

    public init(booleanLiteral value: Bool) {
        self = .boolean(value)
    }

    public init(arrayLiteral elements: QueryArgument...) {
        self = .array(elements)
    }

    public init(nilLiteral: ()) {
        self = .undefined
    }
}
