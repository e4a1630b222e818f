// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The parameters of an item or an inner list (RFC 9651 §3.1.2).
public typealias StructuredParameters = StructuredMap<StructuredBareItem>

/// A value with its parameters (RFC 9651 §3.3).
public struct StructuredItem: Sendable, Hashable {
    /// The value.
    public var value: StructuredBareItem

    /// Its parameters in order.
    public var parameters: StructuredParameters

    /// Creates an item.
    ///
    /// - Parameters:
    ///   - value: the value.
    ///   - parameters: its parameters; none by default.
    public init(_ value: StructuredBareItem, parameters: StructuredParameters = [:]) {
        self.value = value
        self.parameters = parameters
    }

    /// Reads a field that is an Item (RFC 9651 §4.2); strict, linear time.
    ///
    /// - Parameter value: the combined field value; empty text is no item.
    /// - Throws: ``StructuredFieldError`` on the first fault; nothing of the field is kept then.
    public init(parsing value: String) throws(StructuredFieldError) {
        var parser = StructuredFieldParser(value)
        self = try parser.field { parser throws(StructuredFieldError) in try parser.item() }
    }

    /// The field value (RFC 9651 §4.1).
    ///
    /// - Throws: ``StructuredFieldError`` for numbers, texts or keys that the format cannot hold.
    public func serialized() throws(StructuredFieldError) -> String {
        var serializer = StructuredFieldSerializer()
        try serializer.item(self)
        return serializer.text
    }
}

/// A list in parentheses inside a List or a Dictionary (RFC 9651 §3.1.1).
public struct StructuredInnerList: Sendable, Hashable {
    /// The items in order; may be empty.
    public var items: [StructuredItem]

    /// The parameters of the list itself.
    public var parameters: StructuredParameters

    /// Creates an inner list.
    ///
    /// - Parameters:
    ///   - items: the items in order.
    ///   - parameters: the parameters of the list itself; none by default.
    public init(_ items: [StructuredItem], parameters: StructuredParameters = [:]) {
        self.items = items
        self.parameters = parameters
    }
}

/// A member of a List or a Dictionary; the grammar knows these two and no others (RFC 9651 §3.1, §3.2).
public enum StructuredMember: Sendable, Hashable {
    /// One item.
    case item(StructuredItem)
    /// A list of items.
    case innerList(StructuredInnerList)

    /// The item, or nil for an inner list.
    public var item: StructuredItem? {
        if case .item(let item) = self { item } else { nil }
    }

    /// A member that is one value without parameters.
    public static func bare(_ value: StructuredBareItem) -> StructuredMember { .item(StructuredItem(value)) }
}
