// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The request fields that bear on whether a stored response may answer, whatever its Vary nominates: directives, conditions, ranges,
/// credentials, and the host.
package enum ReuseFields {
    /// Their names in lower case.
    package static let names: [String] = [
        "host", "range", "cookie", "pragma", "if-match", "if-range", "cache-control", "authorization", "if-none-match",
        "if-modified-since", "if-unmodified-since",
    ]
}

/// Finds names of fields by their length first, since most names have none of the lengths that are looked for.
package struct FieldNameFinder: Sendable {
    private struct Name: Sendable {
        let bytes: [UInt8]
        let number: Int
    }

    private let lengths: UInt64
    private let names: [Name]

    /// - Parameter names: in lower case; a name of 64 bytes or more is looked for as any other, only later.
    package init(_ names: [String]) {
        self.names = names.enumerated().map { Name(bytes: Array($1.utf8), number: $0) }
        lengths = self.names.reduce(0) { $0 | 1 << UInt64(min($1.bytes.count, 63)) }
    }

    /// Which of the names this is, letter case aside (RFC 9110 §5.1); nil where it is none of them. No allocation.
    @inline(__always)
    package func number(of name: String) -> Int? {
        let count = name.utf8.count
        guard lengths >> UInt64(min(count, 63)) & 1 == 1 else { return nil }
        return compared(name, count)
    }

    private func compared(_ name: String, _ count: Int) -> Int? {
        var name = name
        return name.withUTF8 { bytes in
            for known in names where known.bytes.count == count {
                var index = 0
                while index < count, bytes[index].lowerCased == known.bytes[index] { index += 1 }
                if index == count { return known.number }
            }
            return nil
        }
    }
}
