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

        /// A line that was stored, so that its value has been cleaned.
        init(stored name: FieldName, value: String) { (self.name, self.value) = (name, value) }
    }

    /// Lines that are read where a cache has stored them; the others follow them.
    private var encoded: EncodedLines?
    private var others: [Line]

    private var lines: [Line] {
        get { encoded.map { $0.lines + others } ?? others }
        _modify {
            if let encoded {
                others = encoded.lines + others
                self.encoded = nil
            }
            yield &others
        }
    }

    /// Creates an empty list of lines.
    public init() { others = [] }

    /// Creates the list from lines, in their order.
    ///
    /// - Parameter lines: any lines; duplicates stay.
    public init(_ lines: some Sequence<Line>) { others = Array(lines) }

    /// The list that a cache has stored, as frames of names and values (``encode(into:)``).
    ///
    /// Nothing is copied, and a line becomes text only when it is read. Nil if the bytes are not whole lines.
    ///
    /// - Parameters:
    ///   - bytes: those of the whole entry, which the list keeps in memory.
    ///   - range: where the lines stand.
    ///   - count: how many there are; fewer are there if the bytes are damaged.
    package init?(encoded bytes: [UInt8], in range: Range<Int>, count: Int) {
        if let encoded = EncodedLines(bytes, in: range, count: count) {
            self.encoded = encoded
            others = []
            return
        }
        guard range.upperBound <= bytes.count else { return nil }
        var reader = FramedBytes.Reader(Array(bytes[range]))
        var lines: [Line] = []
        while !reader.isAtEnd {
            guard let name = reader.nextString().flatMap({ FieldName($0) }), let value = reader.nextString() else {
                return nil
            }
            lines.append(Line(name: name, value: value))
        }
        others = lines
    }

    /// Whether there are as many lines as was said; false if what was stored is damaged.
    package var areWhole: Bool { encoded?.areWhole ?? true }

    /// Appends the frames of each line's name and value.
    package func encode(into frames: inout FramedBytes) {
        for line in self {
            frames.append(line.name.rawName)
            frames.append(line.value)
        }
    }

    /// The combined value of a field, or nil when no line has that name.
    ///
    /// Reading joins the lines with ", " (RFC 9110 §5.3), those of `Cookie` with "; " (RFC 6265 §5.4). `Set-Cookie` cannot be
    /// combined, so reading returns only its first line: use ``values(of:)``. Writing replaces the first line with one line and
    /// removes the others; nil removes all.
    public subscript(_ name: FieldName) -> String? {
        get {
            var combined: String?
            forEachValue(of: name) { value in
                guard combined != nil else {
                    combined = value
                    return name != .setCookie
                }
                combined?.append(name.lineSeparator ?? ", ")
                combined?.append(value)
                return true
            }
            return combined
        }
        set {
            guard let newValue else { return removeAll(name) }
            guard contains(name) else { return append(name, newValue) }
            guard let first = lines.firstIndex(where: { $0.name == name }) else { return }
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
        var values: [String] = []
        forEachValue(of: name) { value in
            values.append(value)
            return true
        }
        return values
    }

    /// Whether any line has this name, even with an empty value.
    public func contains(_ name: FieldName) -> Bool {
        encoded?.contains(name) ?? false || others.contains { $0.name == name }
    }

    /// Calls `body` with the value of each line of a field, in order, until it returns false.
    private func forEachValue(of name: FieldName, _ body: (String) -> Bool) {
        if let encoded, !encoded.forEachValue(of: name, body) { return }
        for line in others where line.name == name {
            if !body(line.value) { return }
        }
    }

    /// Appends a line.
    public mutating func append(_ name: FieldName, _ value: String) {
        others.append(Line(name: name, value: value))
    }

    /// Appends an Age line to a list that has none.
    ///
    /// - Parameter seconds: not negative.
    mutating func appendAge(_ seconds: Int64) {
        if encoded == nil || !others.isEmpty { append(.age, String(seconds)) } else { encoded?.age = seconds }
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
        if let encoded, let known = other.encoded { return encoded.isIdentical(to: known) && others == other.others }
        return encoded == nil && other.encoded == nil && others.count == other.others.count
            && others.withUnsafeBufferPointer { $0.baseAddress }
                == other.others.withUnsafeBufferPointer { $0.baseAddress }
    }

    /// The same list with bytes of its own, so that it does not keep the whole entry in memory; nil if they are too many.
    package func compacted(upTo limit: Int) -> HeaderFields? {
        guard others.count <= 4, let compacted = encoded?.compacted(upTo: limit) else { return nil }
        var fields = self
        fields.encoded = compacted
        return fields
    }

    /// A number that is equal where ``isIdentical(to:)`` is true, for tables in which nobody gains by equal ones; nil if the list
    /// is not as it was stored.
    package var quickHash: UInt64? { encoded?.quickHash }

    /// Removes every line of one field.
    public mutating func removeAll(_ name: FieldName) {
        encoded?.removeAll(name)
        others.removeAll { $0.name == name }
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
        let added = other.lines
        let replaced = Set(added.map(\.name))
        return HeaderFields(lines.filter { !replaced.contains($0.name) } + added)
    }

    /// Whether both have equal lines in the same order.
    public static func == (left: HeaderFields, right: HeaderFields) -> Bool {
        if left.encoded == nil, right.encoded == nil { return left.others == right.others }
        return left.isIdentical(to: right) || left.elementsEqual(right)
    }

    /// Feeds the lines to the hasher.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(lines)
    }
}

extension HeaderFields: RandomAccessCollection {
    /// The index of the first line.
    public var startIndex: Int { 0 }

    /// The index after the last line.
    public var endIndex: Int { (encoded?.count ?? 0) + others.count }

    /// Iterates over the lines.
    public func makeIterator() -> IndexingIterator<[Line]> { lines.makeIterator() }

    /// The line at an index.
    ///
    /// - Precondition: the index is within the collection.
    public subscript(position: Int) -> Line {
        precondition(position >= 0 && position < count, "There is no field line \(position)")
        guard let encoded else { return others[position] }
        let count = encoded.count
        return position < count ? encoded[position] : others[position - count]
    }
}

extension HeaderFields: ExpressibleByDictionaryLiteral {
    /// Creates the list from a literal; order and duplicates are kept.
    public init(dictionaryLiteral elements: (FieldName, String)...) {
        others = elements.map { Line(name: $0.0, value: $0.1) }
    }
}

extension HeaderFields {
    static func cleaned(_ value: String) -> String {
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

/// Field lines as a cache stores them: name and value of each, both after their length (``FramedBytes``).
///
/// They are read where they stand: a line becomes text only when it is asked for. Lines can be left out, and an Age added behind
/// them, without copying any.
struct EncodedLines: Sendable {
    /// Lists with more lines are not used in this form, since a bit says of each whether it is left out.
    static let mostLines = 64

    private let bytes: [UInt8]
    private let start: UInt32
    private let end: UInt32
    private let storedCount: UInt8
    /// A bit for each stored line.
    private var leftOut: UInt64 = 0
    /// The value of an Age line behind the stored ones; negative: there is none.
    var age: Int64 = -1

    /// Nil if there are too many, or if the range is not one of the bytes.
    ///
    /// - Parameters:
    ///   - range: where the lines stand.
    ///   - count: how many there are.
    init?(_ bytes: [UInt8], in range: Range<Int>, count: Int) {
        guard range.upperBound <= bytes.count, let end = UInt32(exactly: range.upperBound),
            count >= 0, count <= EncodedLines.mostLines
        else { return nil }
        (self.bytes, self.end, start, storedCount) = (bytes, end, UInt32(range.lowerBound), UInt8(count))
    }

    /// Whether there are exactly as many stored lines as was said.
    var areWhole: Bool {
        withStored { stored in
            var walk = FrameWalk(stored)
            for _ in 0..<storedCount {
                guard walk.next() != nil, walk.next() != nil else { return false }
            }
            return walk.isAtEnd
        }
    }

    /// How many lines there are.
    var count: Int { Int(storedCount) - leftOut.nonzeroBitCount + (age < 0 ? 0 : 1) }

    /// Whether both are the same stored bytes, with the same lines left out and the same Age.
    func isIdentical(to other: EncodedLines) -> Bool {
        leftOut == other.leftOut && age == other.age
            && withStored { stored in other.withStored { stored.hasSameBytes(as: $0) } }
    }

    /// A number that is equal where ``isIdentical(to:)`` is true; for tables in which nobody gains by equal ones.
    var quickHash: UInt64 {
        var hash = UInt64(bitPattern: age) ^ leftOut
        func mix(_ word: UInt64) {
            hash = (hash ^ word) &* 0x9E37_79B9_7F4A_7C15
            hash ^= hash >> 32
        }
        withStored { stored in
            var offset = 0
            while stored.count - offset >= 8 {
                mix(stored.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
                offset += 8
            }
            while offset < stored.count {
                mix(UInt64(stored[offset]))
                offset += 1
            }
        }
        return hash
    }

    /// See ``HeaderFields/compacted(upTo:)``.
    func compacted(upTo limit: Int) -> EncodedLines? {
        let range = Int(start)..<Int(end)
        guard range.count <= limit,
            var compacted = EncodedLines(Array(bytes[range]), in: 0..<range.count, count: Int(storedCount))
        else { return nil }
        (compacted.leftOut, compacted.age) = (leftOut, age)
        return compacted
    }

    mutating func removeAll(_ name: FieldName) {
        if name == .age { age = -1 }
        var named: UInt64 = 0
        forEachStored { stored, spelled, _, number in
            if name.isSpelled(UnsafeRawBufferPointer(rebasing: stored[spelled])) { named |= 1 << number }
            return true
        }
        leftOut |= named
    }

    /// The lines, in order.
    var lines: [HeaderFields.Line] {
        var lines: [HeaderFields.Line] = []
        lines.reserveCapacity(count)
        forEachStored { stored, name, value, number in
            if leftOut >> number & 1 == 0 { lines.append(EncodedLines.line(stored, name: name, value: value)) }
            return true
        }
        if age >= 0 { lines.append(ageLine) }
        return lines
    }

    /// The line at an index, which is below ``count``.
    subscript(index: Int) -> HeaderFields.Line {
        var left = index
        var found: HeaderFields.Line?
        forEachStored { stored, name, value, number in
            guard leftOut >> number & 1 == 0 else { return true }
            if left == 0 { found = EncodedLines.line(stored, name: name, value: value) }
            left -= 1
            return found == nil
        }
        // What is damaged may have fewer lines than it says.
        return found ?? (age >= 0 && left == 0 ? ageLine : HeaderFields.Line(stored: .unreadable, value: ""))
    }

    /// Calls `body` with the value of each line of a field, in order, until it returns false.
    ///
    /// - Returns: false if it did.
    @inline(__always)
    func forEachValue(of name: FieldName, _ body: (String) -> Bool) -> Bool {
        var goesOn = true
        forEachStored { stored, spelled, value, number in
            if leftOut >> number & 1 == 0, name.isSpelled(UnsafeRawBufferPointer(rebasing: stored[spelled])) {
                goesOn = body(String(decoding: stored[value], as: UTF8.self))
            }
            return goesOn
        }
        if goesOn, age >= 0, name == .age { return body(String(age)) }
        return goesOn
    }

    /// Whether there is a line of a field.
    func contains(_ name: FieldName) -> Bool {
        if age >= 0, name == .age { return true }
        var isThere = false
        forEachStored { stored, spelled, _, number in
            isThere = leftOut >> number & 1 == 0 && name.isSpelled(UnsafeRawBufferPointer(rebasing: stored[spelled]))
            return !isThere
        }
        return isThere
    }

    private var ageLine: HeaderFields.Line { HeaderFields.Line(name: .age, value: String(age)) }

    private static func line(
        _ stored: UnsafeRawBufferPointer,
        name: Range<Int>,
        value: Range<Int>
    ) -> HeaderFields.Line {
        HeaderFields.Line(
            stored: FieldName(stored: String(decoding: stored[name], as: UTF8.self)),
            value: String(decoding: stored[value], as: UTF8.self)
        )
    }

    @inline(__always)
    private func withStored<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        bytes.withUnsafeBytes { body(UnsafeRawBufferPointer(rebasing: $0[Int(start)..<Int(end)])) }
    }

    /// Calls `body` with each stored line, and the places of its name and value, until it returns false.
    @inline(__always)
    private func forEachStored(
        _ body: (_ stored: UnsafeRawBufferPointer, _ name: Range<Int>, _ value: Range<Int>, _ number: UInt64) -> Bool
    ) {
        withStored { stored in
            var walk = FrameWalk(stored)
            var number: UInt64 = 0
            while number < UInt64(storedCount), let name = walk.next(), let value = walk.next(),
                body(stored, name, value, number)
            {
                number += 1
            }
        }
    }
}

extension FieldName {
    /// What joins the values of several lines (RFC 9110 §5.3; RFC 6265 §5.4 for `Cookie`); nil for `Set-Cookie`, whose lines cannot be
    /// joined.
    package var lineSeparator: String? {
        switch self {
        case .setCookie: nil
        case .cookie: "; "
        default: ", "
        }
    }
}
