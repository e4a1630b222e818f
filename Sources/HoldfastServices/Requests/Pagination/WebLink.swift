// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import HoldfastSemantics

/// Reads Link fields (RFC 8288 §3).
enum WebLink {
    /// The first link of a relation; nil where there is none. A link about another context (`anchor`) does not count.
    ///
    /// - Parameters:
    ///   - relation: the relation type, in lower case.
    ///   - lines: the values of the Link lines.
    ///   - base: what relative references are resolved against.
    static func target(of relation: String, in lines: [String], base: URL) -> URL? {
        for line in lines {
            var scanner = LinkScanner(line)
            while let link = scanner.next() {
                let words = link.parameters["rel"]?.lowercased().split(separator: " ") ?? []
                guard words.contains(where: { $0 == relation }), link.parameters["anchor"] == nil else { continue }
                return URL(string: link.target, relativeTo: base)?.absoluteURL
            }
        }
        return nil
    }
}

/// Takes a Link field value apart, link by link; what is malformed ends it.
private struct LinkScanner {
    private var rest: Substring

    init(_ line: String) {
        rest = line[...]
    }

    mutating func next() -> (target: String, parameters: [String: String])? {
        skip(" \t,")
        guard take("<"), let end = rest.firstIndex(of: ">") else { return nil }
        let target = String(rest[..<end])
        rest = rest[rest.index(after: end)...]
        var parameters: [String: String] = [:]
        skip(" \t")
        while take(";") {
            skip(" \t")
            let name = String(takeWhile { !" \t=;,".contains($0) }).lowercased()
            skip(" \t")
            var value = ""
            if take("=") {
                skip(" \t")
                value = take("\"") ? quoted() : String(takeWhile { !" \t;,".contains($0) })
            }
            // Of several parameters of one name the first counts (RFC 8288 §3.3).
            if !name.isEmpty, parameters[name] == nil { parameters[name] = value }
            skip(" \t")
        }
        return (target, parameters)
    }

    private mutating func quoted() -> String {
        var value = ""
        while let character = rest.popFirst(), character != "\"" {
            if character == "\\", let escaped = rest.popFirst() {
                value.append(escaped)
            } else {
                value.append(character)
            }
        }
        return value
    }

    private mutating func skip(_ characters: String) {
        _ = takeWhile { characters.contains($0) }
    }

    private mutating func take(_ character: Character) -> Bool {
        guard rest.first == character else { return false }
        rest.removeFirst()
        return true
    }

    private mutating func takeWhile(_ isTaken: (Character) -> Bool) -> Substring {
        let taken = rest.prefix(while: isTaken)
        rest = rest[taken.endIndex...]
        return taken
    }
}

extension URL {
    /// Whether scheme, host and port are the same (RFC 9110 §4.3.1).
    func isSameOrigin(as other: URL) -> Bool {
        guard let mine = try? TargetURI(absoluteString), let others = try? TargetURI(other.absoluteString) else {
            return false
        }
        return mine.isSameOrigin(as: others)
    }
}
