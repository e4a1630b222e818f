// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The parameters of an item or an inner list (RFC 9651 §3.1.2).
package typealias StructuredParameters = StructuredMap<StructuredBareItem>

/// A value with its parameters (RFC 9651 §3.3).
package struct StructuredItem: Sendable, Hashable {
    /// The value.
    package var value: StructuredBareItem

    /// Its parameters in order.
    package var parameters: StructuredParameters

    /// Creates an item.
    ///
    /// - Parameters:
    ///   - value: the value.
    ///   - parameters: its parameters; none by default.
    package init(_ value: StructuredBareItem, parameters: StructuredParameters = [:]) {
        self.value = value
        self.parameters = parameters
    }

    /// Parses a field that is an Item (RFC 9651 §4.2); strict, linear time.
    ///
    /// - Parameter value: the combined field value; empty text is not an item.
    /// - Throws: ``StructuredFieldError`` at the first error; nothing of the field is kept then.
    package init(parsing value: String) throws(StructuredFieldError) {
        var parser = StructuredFieldParser(value)
        self = try parser.field { parser throws(StructuredFieldError) in try parser.item() }
    }

    /// The field value (RFC 9651 §4.1).
    ///
    /// - Throws: ``StructuredFieldError`` for numbers, texts or keys that the format cannot represent.
    package func serialized() throws(StructuredFieldError) -> String {
        var serializer = StructuredFieldSerializer()
        try serializer.item(self)
        return serializer.text
    }
}

/// A list in parentheses in a List or a Dictionary (RFC 9651 §3.1.1).
package struct StructuredInnerList: Sendable, Hashable {
    /// The items in order; may be empty.
    package var items: [StructuredItem]

    /// The parameters of the list itself.
    package var parameters: StructuredParameters

    /// Creates an inner list.
    ///
    /// - Parameters:
    ///   - items: the items in order.
    ///   - parameters: the parameters of the list itself; none by default.
    package init(_ items: [StructuredItem], parameters: StructuredParameters = [:]) {
        self.items = items
        self.parameters = parameters
    }
}

/// A member of a List or a Dictionary; the grammar has only these two (RFC 9651 §3.1, §3.2).
package enum StructuredMember: Sendable, Hashable {
    /// One item.
    case item(StructuredItem)
    /// A list of items.
    case innerList(StructuredInnerList)

    /// The item, or nil for an inner list.
    package var item: StructuredItem? {
        if case .item(let item) = self { item } else { nil }
    }

    /// A member that is one value without parameters.
    package static func bare(_ value: StructuredBareItem) -> StructuredMember { .item(StructuredItem(value)) }
}

/// One value without parameters: the eight types of RFC 9651 §3.3.
///
/// Values are checked when they are written, not when they are created. Texts compare like Swift strings, so a Display String
/// equals its other Unicode forms.
package enum StructuredBareItem: Sendable, Hashable {
    /// A whole number within ±999,999,999,999,999 (RFC 9651 §3.3.1).
    case integer(Int64)
    /// A number with up to three decimals (RFC 9651 §3.3.2).
    case decimal(StructuredDecimal)
    /// Printable ASCII text (RFC 9651 §3.3.3).
    case string(String)
    /// A short word: a letter or `*`, then token characters, `:` and `/` (RFC 9651 §3.3.4).
    case token(String)
    /// Bytes, written in base64 (RFC 9651 §3.3.5).
    case byteSequence([UInt8])
    /// True or false (RFC 9651 §3.3.6).
    case boolean(Bool)
    /// Whole seconds since 1970-01-01T00:00:00Z, within the range of an Integer (RFC 9651 §3.3.7).
    case date(Int64)
    /// Unicode text (RFC 9651 §3.3.8).
    case displayString(String)

    /// The largest Integer and Date; the smallest is its negative (RFC 9651 §3.3.1).
    package static let maximumInteger: Int64 = 999_999_999_999_999
}

/// A number with three decimals, stored exactly (RFC 9651 §3.3.2).
package struct StructuredDecimal: Sendable, Hashable, Comparable {
    /// The number times 1000.
    package let thousandths: Int64

    /// Creates a decimal from its thousandths; writing refuses more than twelve digits before the point.
    package init(thousandths: Int64) { self.thousandths = thousandths }

    /// Creates the decimal nearest to a binary number; a half rounds to the even digit (RFC 9651 §4.1.5).
    ///
    /// - Parameter number: the number. Nil for infinities, NaN and more than twelve digits before the point.
    package init?(rounding number: Double) {
        guard number.magnitude <= 1e12 else { return nil }
        // Computed here, since rounded() calls the C math library, which a Linux program without Foundation need not link.
        let scaled = number * 1000
        let whole = Int64(scaled)
        let rest = (scaled - Double(whole)).magnitude
        let isRoundedUp = rest > 0.5 || (rest == 0.5 && !whole.isMultiple(of: 2))
        let nearest = isRoundedUp ? whole + (scaled < 0 ? -1 : 1) : whole
        guard nearest.magnitude <= UInt64(StructuredDecimal.maximumThousandths) else { return nil }
        thousandths = nearest
    }

    /// The nearest binary number.
    package var doubleValue: Double { Double(thousandths) / 1000 }

    /// Whether the left number is smaller.
    package static func < (left: StructuredDecimal, right: StructuredDecimal) -> Bool {
        left.thousandths < right.thousandths
    }

    static let maximumThousandths: Int64 = 999_999_999_999_999
}
