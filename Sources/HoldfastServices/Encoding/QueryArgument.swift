// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The value of a query argument.
public enum QueryArgument: Sendable, Hashable {
    /// Text, as it is.
    case text(String)
    /// Several values of one name, in this order.
    case array([QueryArgument])
    /// Left out.
    case undefined

    /// The values as they are sent, before encoding.
    public var values: [String] {
        switch self {
        case .text(let text): [text]
        case .array(let elements): elements.flatMap(\.values)
        case .undefined: []
        }
    }
}

/// What can be the value of a query argument.
public protocol QueryArgumentConvertible: Sendable {
    /// The value.
    var queryArgument: QueryArgument { get }
}

extension QueryArgument: QueryArgumentConvertible {
    public var queryArgument: QueryArgument { self }
}

extension String: QueryArgumentConvertible {
    public var queryArgument: QueryArgument { .text(self) }
}

extension Int: QueryArgumentConvertible {
    public var queryArgument: QueryArgument { .text(description) }
}
