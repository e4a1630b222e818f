// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// JSON in its canonical form (RFC 8785), unless that would merge different values.
///
/// Reading and writing have their own stacks, so hostile nesting uses no call stack. The time is linear, except for sorting
/// members.
package struct CanonicalJSON {
    /// The deepest nesting of arrays and objects; deeper content is refused.
    package static let depthLimit = 512

    private enum Node {
        case literal(Range<Int>)
        case string(Range<Int>)
        case array([Int])
        case object([Member])
    }

    private struct Member {
        var name: Range<Int>
        var value: Int
    }

    private struct OpenContainer {
        var isObject: Bool
        var members: [Member] = []
        var name: Range<Int>?
    }

    private var nodes: [Node] = []
    /// Canonical literals and decoded strings, one after another.
    private var scratch: [UInt8] = []
    private var root = 0

    /// The canonical bytes of a JSON text.
    ///
    /// - Parameters:
    ///   - content: a JSON text in UTF-8.
    ///   - optionalNames: members of the outermost object that are omitted if they are null.
    /// - Returns: nil if the bytes must be used as they are: not JSON, not UTF-8, a lone surrogate, two members with the same name,
    ///   an integer written out beyond 2^53, a number that no double is close to, or more levels than ``depthLimit``. So the
    ///   returned bytes are their own canonical form, or are used as they are.
    package static func bytes(of content: [UInt8], leavingOutNull optionalNames: [String] = []) -> [UInt8]? {
        // Validating once at the start allows everything after it to copy bytes.
        guard String(validating: content, as: UTF8.self) != nil else { return nil }
        var document = CanonicalJSON()
        guard document.read(content) else { return nil }
        if !optionalNames.isEmpty { document.leaveOutNull(optionalNames) }
        return document.written(capacity: content.count)
    }

    // MARK: Reading

    private mutating func read(_ content: [UInt8]) -> Bool {
        var reader = JSONReader(content)
        var open: [OpenContainer] = []
        while true {
            reader.skipWhitespace()
            if let container = open.last, container.isObject, container.name == nil {
                guard let name = reader.string(into: &scratch) else { return false }
                reader.skipWhitespace()
                guard reader.consume(UInt8(ascii: ":")) else { return false }
                open[open.count - 1].name = name
                reader.skipWhitespace()
            }
            var finished: Int
            switch reader.peek {
            case UInt8(ascii: "{"), UInt8(ascii: "["):
                let isObject = reader.consume(UInt8(ascii: "{")) || !reader.consume(UInt8(ascii: "["))
                guard open.count < CanonicalJSON.depthLimit else { return false }
                reader.skipWhitespace()
                guard reader.consume(isObject ? UInt8(ascii: "}") : UInt8(ascii: "]")) else {
                    open.append(OpenContainer(isObject: isObject))
                    continue
                }
                finished = add(isObject ? .object([]) : .array([]))
            case UInt8(ascii: "\""):
                guard let range = reader.string(into: &scratch) else { return false }
                finished = add(.string(range))
            default:
                guard let range = reader.literal(into: &scratch) else { return false }
                finished = add(.literal(range))
            }
            while true {
                reader.skipWhitespace()
                guard var container = open.popLast() else {
                    root = finished
                    return reader.isAtEnd
                }
                container.members.append(Member(name: container.name ?? 0..<0, value: finished))
                container.name = nil
                if reader.consume(UInt8(ascii: ",")) {
                    open.append(container)
                    break
                }
                guard reader.consume(container.isObject ? UInt8(ascii: "}") : UInt8(ascii: "]")),
                    let node = closed(container)
                else { return false }
                finished = node
            }
        }
    }

    private mutating func add(_ node: Node) -> Int {
        nodes.append(node)
        return nodes.count - 1
    }

    /// nil if two members have the same name: only the server knows which of them counts.
    private mutating func closed(_ container: OpenContainer) -> Int? {
        guard container.isObject else { return add(.array(container.members.map(\.value))) }
        let members = container.members.sorted { precedes($0.name, $1.name) }
        for (one, next) in zip(members, members.dropFirst()) where scratch[one.name] == scratch[next.name] {
            return nil
        }
        return add(.object(members))
    }

    /// Whether a name comes first in the order of UTF-16 code units (RFC 8785 §3.2.3), determined from UTF-8.
    ///
    /// The two orders differ in one point: surrogates, which UTF-8 encodes with F0–F4, precede U+E000–U+FFFF, which it encodes with
    /// EE and EF.
    private func precedes(_ one: Range<Int>, _ other: Range<Int>) -> Bool {
        for (left, right) in zip(scratch[one], scratch[other]) where left != right {
            let leftRank = left == 0xEE || left == 0xEF ? left + 0x10 : left
            let rightRank = right == 0xEE || right == 0xEF ? right + 0x10 : right
            return leftRank < rightRank
        }
        return one.count < other.count
    }

    private mutating func leaveOutNull(_ names: [String]) {
        guard case .object(var members) = nodes[root] else { return }
        members.removeAll { member in
            guard case .literal(let range) = nodes[member.value] else { return false }
            return scratch[range].elementsEqual("null".utf8)
                && names.contains { $0.utf8.elementsEqual(scratch[member.name]) }
        }
        nodes[root] = .object(members)
    }

    // MARK: Writing

    private func written(capacity: Int) -> [UInt8] {
        var output: [UInt8] = []
        output.reserveCapacity(capacity)
        var open: [(node: Int, next: Int)] = []
        var current: Int? = root
        while true {
            if let node = current {
                current = nil
                switch nodes[node] {
                case .literal(let range):
                    output += scratch[range]
                case .string(let range):
                    appendString(range, to: &output)
                case .array:
                    output.append(UInt8(ascii: "["))
                    open.append((node, 0))
                case .object:
                    output.append(UInt8(ascii: "{"))
                    open.append((node, 0))
                }
            }
            guard let (node, next) = open.popLast() else { return output }
            switch nodes[node] {
            case .array(let values):
                guard next < values.count else {
                    output.append(UInt8(ascii: "]"))
                    continue
                }
                if next > 0 { output.append(UInt8(ascii: ",")) }
                current = values[next]
            case .object(let members):
                guard next < members.count else {
                    output.append(UInt8(ascii: "}"))
                    continue
                }
                if next > 0 { output.append(UInt8(ascii: ",")) }
                appendString(members[next].name, to: &output)
                output.append(UInt8(ascii: ":"))
                current = members[next].value
            case .literal, .string:
                continue
            }
            open.append((node, next + 1))
        }
    }

    /// RFC 8785 §3.2.2.2: escape only what must be escaped.
    private func appendString(_ range: Range<Int>, to output: inout [UInt8]) {
        output.append(UInt8(ascii: "\""))
        for byte in scratch[range] {
            switch byte {
            case 0x08: output += "\\b".utf8
            case 0x09: output += "\\t".utf8
            case 0x0A: output += "\\n".utf8
            case 0x0C: output += "\\f".utf8
            case 0x0D: output += "\\r".utf8
            case UInt8(ascii: "\""): output += "\\\"".utf8
            case UInt8(ascii: "\\"): output += "\\\\".utf8
            case 0..<0x20: output += "\\u00\(SHA256Digest.hex([byte]))".utf8
            default: output.append(byte)
            }
        }
        output.append(UInt8(ascii: "\""))
    }
}

/// The strings, numbers and literals of a JSON text (RFC 8259), parsed strictly from valid UTF-8.
struct JSONReader {
    /// Longer numbers are refused: nothing needs them, and their conversion would take more than linear time.
    private static let numberLimit = 1100

    private let bytes: [UInt8]
    /// How many bytes have been read; after a failure, its position.
    private(set) var position = 0

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    var isAtEnd: Bool { position >= bytes.count }

    var peek: UInt8? { position < bytes.count ? bytes[position] : nil }

    mutating func skipWhitespace() {
        while let byte = peek, byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 { position += 1 }
    }

    mutating func consume(_ byte: UInt8) -> Bool {
        guard peek == byte else { return false }
        position += 1
        return true
    }

    /// Decodes the string at the position and appends it to `output`; nil if it is malformed or has a lone surrogate.
    mutating func string(into output: inout [UInt8]) -> Range<Int>? {
        guard consume(UInt8(ascii: "\"")) else { return nil }
        let start = output.count
        while let byte = peek {
            position += 1
            switch byte {
            case UInt8(ascii: "\""):
                return start..<output.count
            case UInt8(ascii: "\\"):
                guard let scalar = escape() else { return nil }
                output += String(Character(scalar)).utf8
            case 0..<0x20:
                return nil
            default:
                output.append(byte)
            }
        }
        return nil
    }

    private mutating func escape() -> Unicode.Scalar? {
        guard let byte = peek else { return nil }
        position += 1
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): return Unicode.Scalar(byte)
        case UInt8(ascii: "b"): return "\u{8}"
        case UInt8(ascii: "f"): return "\u{C}"
        case UInt8(ascii: "n"): return "\n"
        case UInt8(ascii: "r"): return "\r"
        case UInt8(ascii: "t"): return "\t"
        case UInt8(ascii: "u"): break
        default: return nil
        }
        guard let unit = codeUnit() else { return nil }
        guard (0xD800..<0xDC00).contains(unit) else { return Unicode.Scalar(unit) }
        guard consume(UInt8(ascii: "\\")), consume(UInt8(ascii: "u")), let low = codeUnit(),
            (0xDC00..<0xE000).contains(low)
        else { return nil }
        return Unicode.Scalar(0x10000 + (unit - 0xD800) << 10 + (low - 0xDC00))
    }

    private mutating func codeUnit() -> UInt32? {
        guard bytes.count - position >= 4 else { return nil }
        var unit: UInt32 = 0
        for _ in 0..<4 {
            guard let digit = bytes[position].hexValue else { return nil }
            unit = unit << 4 | UInt32(digit)
            position += 1
        }
        return unit
    }

    /// Appends the canonical form of a number, `true`, `false` or `null` to `output`.
    mutating func literal(into output: inout [UInt8]) -> Range<Int>? {
        let start = output.count
        let rest = bytes[position...]
        for word in ["true", "false", "null"] where rest.starts(with: word.utf8) {
            position += word.utf8.count
            output += word.utf8
            return start..<output.count
        }
        guard let number = number() else { return nil }
        output += number.utf8
        return start..<output.count
    }

    /// Parses the grammar of RFC 8259 §6, and returns the form of RFC 8785 §3.2.2.3.
    private mutating func number() -> String? {
        let start = position
        _ = consume(UInt8(ascii: "-"))
        if !consume(UInt8(ascii: "0")) {
            guard skipDigits() else { return nil }
        }
        if consume(UInt8(ascii: ".")) {
            guard skipDigits() else { return nil }
        }
        if consume(UInt8(ascii: "e")) || consume(UInt8(ascii: "E")) {
            if !consume(UInt8(ascii: "+")) { _ = consume(UInt8(ascii: "-")) }
            guard skipDigits() else { return nil }
        }
        guard position - start <= JSONReader.numberLimit else { return nil }
        let text = String(decoding: bytes[start..<position], as: UTF8.self)
        guard let value = Double(text), value.isFinite else { return nil }
        let literal = DecimalDigits(text)
        let shortest = DecimalDigits(value.description)
        guard !value.isZero || literal.digits.isEmpty else { return nil }
        // From 2^53 a double cannot distinguish neighboring integers, so two ids would share one key. Numbers that cannot be ids by
        // their spelling, such as 1E30, are allowed if nothing was rounded.
        if value.magnitude >= 0x1p53 {
            let isInteger = !text.utf8.contains { $0 == UInt8(ascii: ".") || $0 | 0x20 == UInt8(ascii: "e") }
            guard literal == shortest, value.magnitude == 0x1p53 || !isInteger else { return nil }
        }
        return shortest.ecmaScript
    }

    private mutating func skipDigits() -> Bool {
        let start = position
        while let byte = peek, byte.isDigit { position += 1 }
        return position > start
    }
}

/// A decimal number as the digits after "0." and a power of ten, without zeros at either end.
struct DecimalDigits: Equatable {
    private(set) var digits: [UInt8] = []
    private(set) var exponent = 0
    private(set) var isNegative = false

    /// Parses numbers such as `-12.5e+3`; the caller has checked the grammar.
    init(_ text: String) {
        var isFraction = false
        var rest = text.utf8[...]
        while let byte = rest.popFirst() {
            switch byte {
            case UInt8(ascii: "-"): isNegative = true
            case UInt8(ascii: "."): isFraction = true
            case UInt8(ascii: "e"), UInt8(ascii: "E"):
                let isBelow = rest.first == UInt8(ascii: "-")
                let size = FieldScanner.number(rest.drop { !$0.isDigit }, limit: 1_000_000) ?? 0
                exponent += isBelow ? -Int(size) : Int(size)
                rest = rest[rest.endIndex...]
            default:
                if !isFraction, !(digits.isEmpty && byte == UInt8(ascii: "0")) { exponent += 1 }
                if isFraction, digits.isEmpty, byte == UInt8(ascii: "0") { exponent -= 1 }
                if !(digits.isEmpty && byte == UInt8(ascii: "0")) { digits.append(byte) }
            }
        }
        while digits.last == UInt8(ascii: "0") { digits.removeLast() }
        if digits.isEmpty {
            exponent = 0
            isNegative = false
        }
    }

    /// The form of ECMAScript's Number::toString, which RFC 8785 §3.2.2.3 adopts.
    var ecmaScript: String {
        guard !digits.isEmpty else { return "0" }
        var text: [UInt8] = isNegative ? [UInt8(ascii: "-")] : []
        let zero = UInt8(ascii: "0")
        let point = UInt8(ascii: ".")
        switch exponent {
        case digits.count...21 where digits.count <= 21:
            text += digits
            text += repeatElement(zero, count: exponent - digits.count)
        case 1...21:
            text += digits.prefix(exponent)
            text.append(point)
            text += digits.dropFirst(exponent)
        case -5...0:
            text += [zero, point]
            text += repeatElement(zero, count: -exponent)
            text += digits
        default:
            text += digits.prefix(1)
            if digits.count > 1 { text.append(point) }
            text += digits.dropFirst()
            text += "e\(exponent > 0 ? "+" : "")\(exponent - 1)".utf8
        }
        return String(decoding: text, as: UTF8.self)
    }
}
