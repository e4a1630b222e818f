// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastSemantics

/// A request field that a stored response's Vary nominates, and the value it was chosen by (RFC 9111 §4.1).
public struct NominatedField: Sendable, Hashable, CustomStringConvertible {
    /// What is known of the value.
    public struct Value: Sendable, Hashable {
        /// The value in the form in which the cache compares it; nil where it is absent or hidden.
        public let text: String?
        /// Whether it is a credential's: the cache keeps no more than a keyed digest of those.
        public let isHidden: Bool

        /// The request had no such field.
        public static let absent = Value(text: nil, isHidden: false)
        /// The request had such a field, and its value is not shown.
        public static let hidden = Value(text: nil, isHidden: true)

        /// This very text.
        public static func text(_ text: String) -> Value { Value(text: text, isHidden: false) }
    }

    /// The field's name, in lower case.
    public let name: String
    /// Its value.
    public let value: Value

    /// As `name: value`, with `(absent)` and `(hidden)` where there is no text.
    public var description: String {
        "\(name): \(value.text ?? (value.isHidden ? "(hidden)" : "(absent)"))"
    }

    /// What the cache keeps of the request, read from the form in which it keeps it.
    static func all(of nominated: NominatedFields) -> [NominatedField] {
        var reader = FramedBytes.Reader(nominated.framed)
        _ = reader.next()
        var fields: [NominatedField] = []
        while let name = reader.nextString(), let value = reader.next() {
            let shown: Value
            if value.isEmpty {
                shown = .absent
            } else if value.first == UInt8(ascii: "#") || hiddenNames.contains(name) {
                shown = .hidden
            } else {
                shown = .text(String(decoding: value.dropFirst(), as: UTF8.self))
            }
            fields.append(NominatedField(name: name, value: shown))
        }
        return fields
    }

    private static let hiddenNames: Set<String> = ["authorization", "cookie", "proxy-authorization"]
}
