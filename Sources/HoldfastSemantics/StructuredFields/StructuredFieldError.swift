// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Why a text is no structured field, or a value cannot be written as one (RFC 9651 §4).
public struct StructuredFieldError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The kind of fault; its raw value is stable and fit for metric labels.
    public struct Code: RawRepresentable, Sendable, Hashable {
        /// The stable text.
        public let rawValue: String

        /// Creates a code from its stable text.
        public init(rawValue: String) {
            self.rawValue = rawValue
        }

        /// A key outside RFC 9651 §3.1.2.
        public static let key = Code(rawValue: "key")
        /// A number that is malformed or out of range.
        public static let number = Code(rawValue: "number")
        /// A String that is not closed or holds what it may not.
        public static let string = Code(rawValue: "string")
        /// A Token with a character it may not hold.
        public static let token = Code(rawValue: "token")
        /// A Byte Sequence that is not closed or no base64.
        public static let byteSequence = Code(rawValue: "byte-sequence")
        /// A Boolean other than `?0` and `?1`.
        public static let boolean = Code(rawValue: "boolean")
        /// A Date that is no Integer, or out of range.
        public static let date = Code(rawValue: "date")
        /// A Display String that is not closed, badly escaped or no UTF-8.
        public static let displayString = Code(rawValue: "display-string")
        /// No value starts where one must.
        public static let item = Code(rawValue: "item")
        /// An inner list that is not closed, or whose items no space parts.
        public static let innerList = Code(rawValue: "inner-list")
        /// A comma without a member behind it, or text where a comma must stand.
        public static let separator = Code(rawValue: "separator")
    }

    /// The kind of fault.
    public let code: Code

    /// What is wrong and what to do about it, for people; holds nothing of the field's content.
    public let message: String

    /// The byte of the field value at which reading stopped; nil when a value could not be written.
    public let position: Int?

    init(_ code: Code, _ message: String, at position: Int? = nil) {
        self.code = code
        self.message = message
        self.position = position
    }

    /// The message with code and position.
    public var description: String {
        "\(message) [\(code.rawValue)\(position.map { " at byte \($0)" } ?? "")]"
    }
}
