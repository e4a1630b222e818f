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

/// Ordered pairs of a unique key and a value: the Parameters and Dictionaries of RFC 9651 §3.1.2 and §3.2.
///
/// Setting an existing key replaces its value in place, as RFC 9651 §4.2.2 requires for a repeated key. Looking up a key takes
/// constant time, so a field with many keys is parsed in linear time; removing one takes linear time.
package struct StructuredMap<Value: Sendable & Hashable>: Sendable {
    /// The keys in order.
    package private(set) var keys: [String] = []
    private var values: [Value] = []
    /// The position of each key; empty up to `scanLimit` keys, for which comparing each is cheaper than hashing.
    private var positions: [String: Int] = [:]

    /// Creates a map without pairs.
    package init() {}

    /// The value of a key, or nil; setting nil removes the pair, setting a new key appends it.
    ///
    /// Keys are not checked here: writing the map refuses keys that RFC 9651 §3.1.2 does not allow.
    package subscript(_ key: String) -> Value? {
        get { position(of: key).map { values[$0] } }
        set {
            guard let newValue else { return remove(key) }
            if let position = position(of: key) {
                values[position] = newValue
            } else {
                append(key, value: newValue)
            }
        }
    }

    private static var scanLimit: Int { 8 }

    private func position(of key: String) -> Int? {
        keys.count <= Self.scanLimit ? keys.firstIndex(of: key) : positions[key]
    }

    private mutating func append(_ key: String, value: Value) {
        keys.append(key)
        values.append(value)
        if keys.count == Self.scanLimit + 1 {
            reindex()
        } else if keys.count > Self.scanLimit {
            positions[key] = keys.count - 1
        }
    }

    private mutating func remove(_ key: String) {
        guard let position = position(of: key) else { return }
        keys.remove(at: position)
        values.remove(at: position)
        reindex()
    }

    private mutating func reindex() {
        positions.removeAll()
        guard keys.count > Self.scanLimit else { return }
        for (position, key) in keys.enumerated() { positions[key] = position }
    }
}

extension StructuredMap: Hashable {
    /// Whether both maps have equal pairs in the same order.
    package static func == (left: StructuredMap, right: StructuredMap) -> Bool {
        left.keys == right.keys && left.values == right.values
    }

    /// Feeds the pairs to the hasher.
    package func hash(into hasher: inout Hasher) {
        hasher.combine(keys)
        hasher.combine(values)
    }
}

extension StructuredMap: RandomAccessCollection {
    /// The index of the first pair.
    package var startIndex: Int { 0 }

    /// The index after the last pair.
    package var endIndex: Int { keys.count }

    /// The pair at an index.
    ///
    /// - Precondition: the index is within the collection.
    package subscript(position: Int) -> (key: String, value: Value) { (keys[position], values[position]) }
}

extension StructuredMap: ExpressibleByDictionaryLiteral {
    /// Creates a map from a literal; the last of equal keys gives the value.
    package init(dictionaryLiteral elements: (String, Value)...) {
        for (key, value) in elements { self[key] = value }
    }
}

/// A field that is a list of items and inner lists (RFC 9651 §3.1).
package struct StructuredList: Sendable, Hashable {
    /// The members in order.
    package var members: [StructuredMember]

    /// Creates a list; empty by default.
    package init(_ members: [StructuredMember] = []) { self.members = members }

    /// Parses a field that is a List (RFC 9651 §4.2); strict, linear time, without a limit of its own.
    ///
    /// - Parameter value: all lines of the field joined by ", ", as ``HeaderFields`` returns them; empty text is an empty list. An
    ///   empty line among others makes the joined text invalid, as in the RFC's algorithm.
    /// - Throws: ``StructuredFieldError`` at the first error; nothing of the field is kept then.
    package init(parsing value: String) throws(StructuredFieldError) {
        var parser = StructuredFieldParser(value)
        self = try parser.field { parser throws(StructuredFieldError) in try parser.list() }
    }

    /// The field value (RFC 9651 §4.1), or nil for an empty list, whose field must not be sent.
    ///
    /// - Throws: ``StructuredFieldError`` for numbers, texts or keys that the format cannot represent.
    package func serialized() throws(StructuredFieldError) -> String? {
        var serializer = StructuredFieldSerializer()
        try serializer.list(self)
        return members.isEmpty ? nil : serializer.text
    }
}

/// A field that maps keys to items and inner lists (RFC 9651 §3.2).
package typealias StructuredDictionary = StructuredMap<StructuredMember>

extension StructuredMap where Value == StructuredMember {
    /// Parses a field that is a Dictionary (RFC 9651 §4.2); strict, linear time, without a limit of its own.
    ///
    /// - Parameter value: all lines of the field joined by ", ", as ``HeaderFields`` returns them; empty text is an empty
    ///   dictionary. A repeated key has its first position and its last value.
    /// - Throws: ``StructuredFieldError`` at the first error; nothing of the field is kept then.
    package init(parsing value: String) throws(StructuredFieldError) {
        var parser = StructuredFieldParser(value)
        self = try parser.field { parser throws(StructuredFieldError) in try parser.dictionary() }
    }

    /// The field value (RFC 9651 §4.1), or nil for an empty dictionary, whose field must not be sent.
    ///
    /// - Throws: ``StructuredFieldError`` for numbers, texts or keys that the format cannot represent.
    package func serialized() throws(StructuredFieldError) -> String? {
        var serializer = StructuredFieldSerializer()
        try serializer.dictionary(self)
        return isEmpty ? nil : serializer.text
    }
}
