// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// A size of cache as people write it: bytes, or a share of what a trace's keys take together.
public struct CacheSize: Sendable, Hashable, CustomStringConvertible {
    private enum Form: Sendable, Hashable {
        case bytes(Int)
        case share(Double)
    }

    private let form: Form
    /// The size as it was written: `1%`, `64MB`.
    public let description: String

    private static let units: [(name: String, bytes: Double)] = [
        ("KIB", 0x1p10), ("MIB", 0x1p20), ("GIB", 0x1p30), ("TIB", 0x1p40),
        ("KB", 1e3), ("MB", 1e6), ("GB", 1e9), ("TB", 1e12), ("B", 1), ("", 1),
    ]

    /// Reads `0.1%`, `64MB` (millions), `1GiB` (powers of 1,024), `4096` (bytes); case does not matter.
    ///
    /// nil for anything else, for 0, and for more than `Int.max` bytes.
    public init?(_ text: String) {
        let upper = text.uppercased()
        description = text
        if upper.hasSuffix("%") {
            guard let percent = Self.number(upper.dropLast()), percent > 0 else { return nil }
            form = .share(percent / 100)
        } else {
            guard let unit = Self.units.first(where: { upper.hasSuffix($0.name) }),
                let count = Self.number(upper.dropLast(unit.name.count)),
                let bytes = Int(exactly: (count * unit.bytes).rounded()),
                bytes > 0
            else { return nil }
            form = .bytes(bytes)
        }
    }

    /// Twenty sizes from 0.01 % to 100 % of the unique bytes, each larger than the one before by the same factor.
    ///
    /// Their names have three significant digits, as does their share.
    public static let curve: [CacheSize] = [
        "0.01", "0.0162", "0.0264", "0.0428", "0.0695", "0.113", "0.183", "0.298", "0.483", "0.785", "1.27", "2.07",
        "3.36",
        "5.46", "8.86", "14.4", "23.4", "37.9", "61.6", "100",
    ].compactMap { CacheSize($0 + "%") }

    /// Reads sizes between commas, each once; `curve` stands for those of ``curve``. nil where one of them is no size.
    public static func list(_ text: String) -> [CacheSize]? {
        var sizes: [CacheSize] = []
        for word in text.split(separator: ",", omittingEmptySubsequences: false) {
            let found = word.lowercased() == "curve" ? curve : [CacheSize(String(word))].compactMap { $0 }
            if found.isEmpty { return nil }
            sizes += found.filter { !sizes.contains($0) }
        }
        return sizes
    }

    /// The bytes, for a trace whose keys take `uniqueBytes` together.
    ///
    /// - Parameters:
    ///   - uniqueBytes: what each key takes once, in all.
    ///   - rate: the share of all keys that the trace has, when it is a sample: a size in bytes becomes smaller by it, so that it
    ///     stands for the whole; a share of the unique bytes is the same of a sample. 1 by default.
    public func bytes(uniqueBytes: Int, rate: Double = 1) -> Int {
        let bytes: Double
        switch form {
        case .bytes(let count) where rate == 1: return count
        case .bytes(let count): bytes = Double(count) * min(max(rate, 0), 1)
        case .share(let share): bytes = Double(uniqueBytes) * share
        }
        return Int(exactly: bytes.rounded(.down)) ?? .max
    }

    /// A decimal number without sign or exponent.
    private static func number(_ text: Substring) -> Double? {
        let isPlain = text.utf8.allSatisfy {
            (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) || $0 == UInt8(ascii: ".")
        }
        return isPlain ? Double(text) : nil
    }
}
