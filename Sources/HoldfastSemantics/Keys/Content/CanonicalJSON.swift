// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// JSON in its one canonical spelling (RFC 8785), where that merges no two different values.
///
/// Reading and writing keep their own stacks, so hostile nesting costs no call stack. The time is linear but for the
/// sorting of members.
package struct CanonicalJSON {
    /// Arrays and objects within each other; deeper content is refused.
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
    ///   - optionalNames: members of the outermost object that are left out where they are null.
    /// - Returns: nil where the bytes are to be used as they are: no JSON, no UTF-8, a lone surrogate, two members of one
    ///   name, an integer spelled out beyond 2^53, a number no double comes near, or more levels than ``depthLimit``. So
    ///   what is returned is its own canonical form, or is used as it is.
    package static func bytes(of content: [UInt8], leavingOutNull optionalNames: [String] = []) -> [UInt8]? {
        // The validation once in the beginning lets all that follows copy bytes.
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

    /// nil where two members share a name: which of them counts is the server's secret.
    private mutating func closed(_ container: OpenContainer) -> Int? {
        guard container.isObject else { return add(.array(container.members.map(\.value))) }
        let members = container.members.sorted { precedes($0.name, $1.name) }
        for (one, next) in zip(members, members.dropFirst()) where scratch[one.name] == scratch[next.name] {
            return nil
        }
        return add(.object(members))
    }

    /// Whether a name comes first in the order of UTF-16 code units (RFC 8785 §3.2.3), told from UTF-8.
    ///
    /// The two orders differ in one point: surrogates, which UTF-8 writes with F0–F4, precede U+E000–U+FFFF, which it
    /// writes with EE and EF.
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

    /// RFC 8785 §3.2.2.2: only what must be escaped is.
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
