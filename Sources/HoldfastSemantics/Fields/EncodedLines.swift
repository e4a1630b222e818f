// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Field lines as a cache stores them: name and value of each, both after their length (``FramedBytes``).
///
/// They are read where they stand: a line becomes text only when it is asked for. Lines can be left out, and others added behind
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
    private var age: Int64 = -1
    private(set) var added: [HeaderFields.Line] = []

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
        bytes.withUnsafeBytes { bytes in
            var walk = FrameWalk(UnsafeRawBufferPointer(rebasing: bytes[Int(start)..<Int(end)]))
            for _ in 0..<storedCount {
                guard walk.next() != nil, walk.next() != nil else { return false }
            }
            return walk.isAtEnd
        }
    }

    /// How many lines there are.
    var count: Int { Int(storedCount) - leftOut.nonzeroBitCount + (age < 0 ? 0 : 1) + added.count }

    /// Whether both are the same stored lines at the same place, with the same ones added; false means nothing.
    func isIdentical(to other: EncodedLines) -> Bool {
        leftOut == other.leftOut && age == other.age && start == other.start && end == other.end && added == other.added
            && bytes.withUnsafeBytes { $0.baseAddress } == other.bytes.withUnsafeBytes { $0.baseAddress }
    }

    /// A number that is equal where ``isIdentical(to:)`` is true.
    var placeHash: UInt {
        let address = bytes.withUnsafeBytes { UInt(bitPattern: $0.baseAddress) }
        return address >> 4 ^ UInt(start) &* 31 ^ UInt(truncatingIfNeeded: age) &* 0x9E37_79B9
    }

    mutating func append(_ line: HeaderFields.Line) { added.append(line) }

    /// Adds an Age line, of which there is none.
    ///
    /// - Parameter seconds: not negative.
    mutating func appendAge(_ seconds: Int64) { age = seconds }

    mutating func removeAll(_ name: FieldName) {
        if name == .age { age = -1 }
        added.removeAll { $0.name == name }
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
        return lines + added
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
        if let found { return found }
        if age >= 0 {
            if left == 0 { return ageLine }
            left -= 1
        }
        // What is damaged may have fewer lines than it says.
        return added.indices.contains(left) ? added[left] : HeaderFields.Line(stored: .unreadable, value: "")
    }

    /// Calls `body` with the value of each line of a field, in order, until it returns false.
    @inline(__always)
    func forEachValue(of name: FieldName, _ body: (String) -> Bool) {
        var goesOn = true
        forEachStored { stored, spelled, value, number in
            if leftOut >> number & 1 == 0, name.isSpelled(UnsafeRawBufferPointer(rebasing: stored[spelled])) {
                goesOn = body(String(decoding: stored[value], as: UTF8.self))
            }
            return goesOn
        }
        guard goesOn else { return }
        if age >= 0, name == .age, !body(String(age)) { return }
        for line in added where line.name == name {
            if !body(line.value) { return }
        }
    }

    /// Whether there is a line of a field.
    func contains(_ name: FieldName) -> Bool {
        if age >= 0, name == .age { return true }
        var isThere = false
        forEachStored { stored, spelled, _, number in
            isThere = leftOut >> number & 1 == 0 && name.isSpelled(UnsafeRawBufferPointer(rebasing: stored[spelled]))
            return !isThere
        }
        return isThere || added.contains { $0.name == name }
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

    /// Calls `body` with each stored line, and the places of its name and value, until it returns false.
    @inline(__always)
    private func forEachStored(
        _ body: (_ stored: UnsafeRawBufferPointer, _ name: Range<Int>, _ value: Range<Int>, _ number: UInt64) -> Bool
    ) {
        bytes.withUnsafeBytes { bytes in
            let stored = UnsafeRawBufferPointer(rebasing: bytes[Int(start)..<Int(end)])
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

/// Reads frames (``FramedBytes``) where they stand; no bytes make it trap.
package struct FrameWalk {
    private let bytes: UnsafeRawBufferPointer
    /// Where the next frame begins.
    package private(set) var position: Int

    /// - Parameter position: within the bytes or at their end.
    package init(_ bytes: UnsafeRawBufferPointer, at position: Int = 0) {
        (self.bytes, self.position) = (bytes, position)
    }

    /// Whether nothing is left.
    package var isAtEnd: Bool { position >= bytes.count }

    /// Where the content of the next frame stands; nil at the end, and if the rest is not a whole frame: then the position stays.
    @inline(__always)
    package mutating func next() -> Range<Int>? {
        guard bytes.count - position >= 4 else { return nil }
        let count = Int(UInt32(bigEndian: bytes.loadUnaligned(fromByteOffset: position, as: UInt32.self)))
        let start = position + 4
        guard bytes.count - start >= count else { return nil }
        position = start + count
        return Range(uncheckedBounds: (start, position))
    }
}
