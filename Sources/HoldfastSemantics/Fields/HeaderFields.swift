// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The header field lines of a message in order; no line is ever lost.
///
/// Lookup ignores the case of names (RFC 9110 §5.1); lines with the same name keep their order (§5.3). A lookup costs one pass over
/// the lines, which is faster than a dictionary at the sizes of real messages.
public struct HeaderFields: Sendable, Hashable {
    /// One field line.
    public struct Line: Sendable, Hashable {
        /// The field's name in its original spelling.
        public let name: FieldName

        /// The value: without surrounding whitespace, and with CR, LF and NUL replaced by spaces (RFC 9110 §5.5).
        public let value: String

        /// Creates a line and cleans its value as RFC 9110 §5.5 requires.
        ///
        /// - Parameters:
        ///   - name: the field's name.
        ///   - value: any text; nothing in it can end the line.
        public init(name: FieldName, value: String) {
            self.name = name
            self.value = HeaderFields.cleaned(value)
        }
    }

    private var lines: [Line]

    /// Creates an empty list of lines.
    public init() {
        lines = []
    }

    /// Creates the list from lines, in their order.
    ///
    /// - Parameter lines: any lines; duplicates stay.
    public init(_ lines: some Sequence<Line>) {
        self.lines = Array(lines)
    }

    /// The combined value of a field, or nil when no line has that name.
    ///
    /// Reading joins the lines with ", " (RFC 9110 §5.3), those of `Cookie` with "; " (RFC 6265 §5.4). `Set-Cookie` cannot be
    /// combined, so reading returns only its first line: use ``values(of:)``. Writing replaces the first line with one line and
    /// removes the others; nil removes all.
    public subscript(_ name: FieldName) -> String? {
        get {
            guard let first = lines.firstIndex(where: { $0.name == name }) else { return nil }
            var combined = lines[first].value
            guard name != .setCookie else { return combined }
            let separator = name == .cookie ? "; " : ", "
            for line in lines[(first + 1)...] where line.name == name {
                combined += separator
                combined += line.value
            }
            return combined
        }
        set {
            guard let newValue else { return removeAll(name) }
            guard let first = lines.firstIndex(where: { $0.name == name }) else { return append(name, newValue) }
            lines[first] = Line(name: name, value: newValue)
            var index = 0
            lines.removeAll { line in
                defer { index += 1 }
                return index > first && line.name == name
            }
        }
    }

    /// The values of all lines of one field, in order.
    ///
    /// - Parameter name: the field.
    /// - Returns: one value for each line; empty if there are none.
    public func values(of name: FieldName) -> [String] {
        lines.compactMap { $0.name == name ? $0.value : nil }
    }

    /// Whether any line has this name, even with an empty value.
    public func contains(_ name: FieldName) -> Bool {
        lines.contains { $0.name == name }
    }

    /// Appends a line.
    public mutating func append(_ name: FieldName, _ value: String) {
        lines.append(Line(name: name, value: value))
    }

    /// Appends a line whose name comes from outside.
    ///
    /// - Parameters:
    ///   - rawName: the name as it arrived.
    ///   - value: the value as it arrived.
    /// - Returns: false if the name is not a token; then nothing was appended.
    @discardableResult
    public mutating func append(rawName: String, value: String) -> Bool {
        guard let name = FieldName(rawName) else { return false }
        append(name, value)
        return true
    }

    /// Whether both are an unchanged copy of the same list; false means nothing.
    package func isIdentical(to other: HeaderFields) -> Bool {
        lines.count == other.lines.count
            && lines.withUnsafeBufferPointer { $0.baseAddress }
                == other.lines.withUnsafeBufferPointer { $0.baseAddress }
    }

    /// Removes every line of one field.
    public mutating func removeAll(_ name: FieldName) {
        lines.removeAll { $0.name == name }
    }

    /// Removes every line for which the predicate returns true.
    public mutating func removeAll(where shouldRemove: (Line) throws -> Bool) rethrows {
        try lines.removeAll(where: shouldRemove)
    }

    /// These fields with others on top: a field in the other list replaces all lines of that field here.
    ///
    /// - Parameter other: the list that takes precedence.
    /// - Returns: the remaining lines of this list in order, then those of the other one.
    public func merging(_ other: HeaderFields) -> HeaderFields {
        guard !other.isEmpty else { return self }
        let replaced = Set(other.lines.map(\.name))
        return HeaderFields(lines.filter { !replaced.contains($0.name) } + other.lines)
    }
}

extension HeaderFields: RandomAccessCollection {
    /// The index of the first line.
    public var startIndex: Int { 0 }

    /// The index after the last line.
    public var endIndex: Int { lines.count }

    /// The line at an index.
    ///
    /// - Precondition: the index is within the collection.
    public subscript(position: Int) -> Line { lines[position] }
}

extension HeaderFields: ExpressibleByDictionaryLiteral {
    /// Creates the list from a literal; order and duplicates are kept.
    public init(dictionaryLiteral elements: (FieldName, String)...) {
        lines = elements.map { Line(name: $0.0, value: $0.1) }
    }
}

extension HeaderFields {
    private static func cleaned(_ value: String) -> String {
        var value = value
        let isClean = value.withUTF8 { bytes in
            guard let first = bytes.first, let last = bytes.last else { return true }
            return !first.isOptionalWhitespace && !last.isOptionalWhitespace
                && !bytes.contains { $0 == 0x0D || $0 == 0x0A || $0 == 0x00 }
        }
        guard !isClean else { return value }
        var result = value.utf8.map { $0 == 0x0D || $0 == 0x0A || $0 == 0x00 ? UInt8(ascii: " ") : $0 }
        while let last = result.last, last.isOptionalWhitespace { result.removeLast() }
        return String(decoding: result.drop(while: \.isOptionalWhitespace), as: UTF8.self)
    }
}
