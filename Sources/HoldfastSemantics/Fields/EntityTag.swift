// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// An entity tag: the name that a server gives one representation (RFC 9110 §8.8.3).
///
/// Compare with ``strongMatches(_:)`` or ``weakMatches(_:)``; `==` means the same spelling.
public struct EntityTag: Sendable, Hashable, CustomStringConvertible {
    /// The opaque text between the quotes.
    public let opaqueTag: String

    /// Whether the tag stands for an equivalent representation rather than an identical one.
    public let isWeak: Bool

    /// Parses one entity tag; whitespace around it is allowed.
    ///
    /// - Parameter text: a field value; nil for anything but `"…"` or `W/"…"` (`W` is case-sensitive).
    public init?(_ text: String) {
        var reader = EntityTagReader(text)
        guard let tag = reader.tag(), reader.isAtEnd else { return nil }
        self = tag
    }

    /// Creates a tag from its parts.
    ///
    /// - Parameters:
    ///   - opaqueTag: the text without quotes. Nil if it contains quotes, spaces or control characters.
    ///   - isWeak: whether it is weak.
    public init?(opaqueTag: String, isWeak: Bool) {
        guard opaqueTag.utf8.allSatisfy(EntityTagReader.isTagCharacter) else { return nil }
        self.init(checked: opaqueTag, isWeak: isWeak)
    }

    fileprivate init(checked: String, isWeak: Bool) {
        opaqueTag = checked
        self.isWeak = isWeak
    }

    /// The tag as a field value, including quotes.
    public var description: String { isWeak ? "W/\"\(opaqueTag)\"" : "\"\(opaqueTag)\"" }

    /// The weak tag with the same text.
    public var weakened: EntityTag { EntityTag(checked: opaqueTag, isWeak: true) }

    /// Whether both tags are strong and the same (RFC 9110 §8.8.3.2).
    public func strongMatches(_ other: EntityTag) -> Bool {
        !isWeak && !other.isWeak && weakMatches(other)
    }

    /// Whether both tags have the same text, weak or not (RFC 9110 §8.8.3.2).
    public func weakMatches(_ other: EntityTag) -> Bool {
        opaqueTag.hasSameBytes(as: other.opaqueTag)
    }

    /// Whether both tags have the same spelling; texts that are only equivalent in Unicode are different tags.
    public static func == (left: EntityTag, right: EntityTag) -> Bool {
        left.isWeak == right.isWeak && left.weakMatches(right)
    }

    /// Parses the value of If-Match or If-None-Match (RFC 9110 §13.1.2).
    ///
    /// - Parameter value: the combined field value; linear time.
    /// - Returns: `any` for `*`, otherwise the tags in order; nil if it has no tag or is malformed.
    package static func list(_ value: String) -> EntityTagList? {
        var reader = EntityTagReader(value)
        if reader.star() { return reader.isAtEnd ? .any : nil }
        var tags: [EntityTag] = []
        while true {
            reader.skipSeparators()
            if reader.isAtEnd { break }
            guard let tag = reader.tag(), reader.isAtSeparator else { return nil }
            tags.append(tag)
        }
        return tags.isEmpty ? nil : .tags(tags)
    }
}

/// The content of If-Match and If-None-Match (RFC 9110 §13.1.1, §13.1.2).
package enum EntityTagList: Sendable, Hashable {
    /// `*`: any current representation.
    case any
    /// The tags in order, at least one.
    case tags([EntityTag])
}

/// Parses tags byte by byte: a backslash in a tag escapes nothing, so the scanner for quoted strings cannot be used.
private struct EntityTagReader {
    private let bytes: [UInt8]
    private var position = 0

    init(_ text: String) {
        bytes = Array(text.utf8)
        skipWhitespace()
    }

    static func isTagCharacter(_ byte: UInt8) -> Bool {
        byte == 0x21 || (byte >= 0x23 && byte != 0x7F)
    }

    var isAtEnd: Bool { position >= bytes.count }

    var isAtSeparator: Bool { isAtEnd || bytes[position] == UInt8(ascii: ",") }

    mutating func star() -> Bool {
        guard !isAtEnd, bytes[position] == UInt8(ascii: "*") else { return false }
        position += 1
        skipWhitespace()
        return true
    }

    mutating func skipSeparators() {
        while !isAtEnd, bytes[position] == UInt8(ascii: ",") || bytes[position].isOptionalWhitespace { position += 1 }
    }

    mutating func tag() -> EntityTag? {
        var isWeak = false
        if position + 1 < bytes.count, bytes[position] == UInt8(ascii: "W"), bytes[position + 1] == UInt8(ascii: "/") {
            isWeak = true
            position += 2
        }
        guard !isAtEnd, bytes[position] == UInt8(ascii: "\"") else { return nil }
        let start = position + 1
        var end = start
        while end < bytes.count, EntityTagReader.isTagCharacter(bytes[end]) { end += 1 }
        guard end < bytes.count, bytes[end] == UInt8(ascii: "\"") else { return nil }
        position = end + 1
        skipWhitespace()
        return EntityTag(checked: String(decoding: bytes[start..<end], as: UTF8.self), isWeak: isWeak)
    }

    private mutating func skipWhitespace() {
        while !isAtEnd, bytes[position].isOptionalWhitespace { position += 1 }
    }
}
