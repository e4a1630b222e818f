// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// A field that is a list of items and inner lists (RFC 9651 §3.1).
public struct StructuredList: Sendable, Hashable {
    /// The members in order.
    public var members: [StructuredMember]

    /// Creates a list; empty by default.
    public init(_ members: [StructuredMember] = []) {
        self.members = members
    }

    /// Reads a field that is a List (RFC 9651 §4.2); strict, linear time, no limit but the input's length.
    ///
    /// - Parameter value: all lines of the field joined by ", ", as ``HeaderFields`` gives them; empty text is an empty
    ///   list. An empty line beside others makes the joined text invalid, as the RFC's algorithm has it.
    /// - Throws: ``StructuredFieldError`` on the first fault; nothing of the field is kept then.
    public init(parsing value: String) throws(StructuredFieldError) {
        var parser = StructuredFieldParser(value)
        self = try parser.field { parser throws(StructuredFieldError) in try parser.list() }
    }

    /// The field value (RFC 9651 §4.1), or nil for an empty list, whose field must not be sent.
    ///
    /// - Throws: ``StructuredFieldError`` for numbers, texts or keys that the format cannot hold.
    public func serialized() throws(StructuredFieldError) -> String? {
        var serializer = StructuredFieldSerializer()
        try serializer.list(self)
        return members.isEmpty ? nil : serializer.text
    }
}

/// A field that maps keys to items and inner lists (RFC 9651 §3.2).
public typealias StructuredDictionary = StructuredMap<StructuredMember>

extension StructuredMap where Value == StructuredMember {
    /// Reads a field that is a Dictionary (RFC 9651 §4.2); strict, linear time, no limit but the input's length.
    ///
    /// - Parameter value: all lines of the field joined by ", ", as ``HeaderFields`` gives them; empty text is an empty
    ///   dictionary. The last of equal keys gives the value, the first its place.
    /// - Throws: ``StructuredFieldError`` on the first fault; nothing of the field is kept then.
    public init(parsing value: String) throws(StructuredFieldError) {
        var parser = StructuredFieldParser(value)
        self = try parser.field { parser throws(StructuredFieldError) in try parser.dictionary() }
    }

    /// The field value (RFC 9651 §4.1), or nil for an empty dictionary, whose field must not be sent.
    ///
    /// - Throws: ``StructuredFieldError`` for numbers, texts or keys that the format cannot hold.
    public func serialized() throws(StructuredFieldError) -> String? {
        var serializer = StructuredFieldSerializer()
        try serializer.dictionary(self)
        return isEmpty ? nil : serializer.text
    }
}
