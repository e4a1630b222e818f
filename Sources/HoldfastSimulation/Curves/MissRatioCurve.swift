// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import HoldfastStorage

/// What a hit ratio counts; closed.
public enum HitRateMeasure: String, Sendable, Hashable, CaseIterable {
    /// Requests.
    case object
    /// Their bytes.
    case byte
}

extension HitRateResult {
    /// The hit ratio in one of the two measures.
    public func hitRatio(_ measure: HitRateMeasure) -> Double {
        switch measure {
        case .object: objectHitRatio
        case .byte: byteHitRatio
        }
    }
}

/// How many requests a policy misses at each of several sizes.
public struct MissRatioCurve: Sendable, Hashable {
    /// One point of the curve.
    public struct Point: Sendable, Hashable {
        /// Bytes of the cache, or another measure of its size.
        public let size: Double
        /// The share of requests, or of their bytes, that were misses: 0 ... 1.
        public let missRatio: Double

        /// A point.
        public init(size: Double, missRatio: Double) {
            self.size = size
            self.missRatio = missRatio
        }
    }

    /// The curve's name.
    public let name: String
    /// The points, the smallest size first.
    public let points: [Point]

    /// A curve through points in any order; those without a size above 0 are skipped.
    public init(name: String, points: [Point]) {
        self.name = name
        self.points = points.filter { $0.size > 0 && $0.size.isFinite && $0.missRatio.isFinite }.sorted {
            $0.size < $1.size
        }
    }

    /// The curve of one policy's results at several sizes. Everything that is not a hit is a miss, including revalidations.
    public init(name: String, results: [HitRateResult], measure: HitRateMeasure = .object) {
        self.init(
            name: name,
            points: results.map { Point(size: Double($0.capacity), missRatio: 1 - $0.hitRatio(measure)) }
        )
    }

    /// Replays a trace through a policy at each of these sizes.
    ///
    /// - Parameters:
    ///   - strategy: the policy.
    ///   - trace: the requests.
    ///   - sizes: one simulation each; ``CacheSize/curve`` by default.
    ///   - measure: what to count: requests, by default, or bytes.
    ///   - rate: the share of all keys in the trace; the curve's sizes are those of the whole. 1 by default; more than 1, and
    ///     NaN, count as 1, and with 0 or less the curve has no points.
    ///   - seed: the source of the policy's random numbers, if it uses any.
    ///   - sizesTellVersions: as for ``HitRateSimulator/init(warmUp:sizesTellVersions:)``; true by default.
    public init(
        _ strategy: EvictionStrategy,
        trace: RequestTrace,
        sizes: [CacheSize] = CacheSize.curve,
        measure: HitRateMeasure = .object,
        rate: Double = 1,
        seed: UInt64 = 0,
        sizesTellVersions: Bool = true
    ) {
        let rate = CacheSize.share(rate)
        var simulator = HitRateSimulator(sizesTellVersions: sizesTellVersions)
        for size in sizes {
            simulator.add(strategy, capacity: size.bytes(uniqueBytes: trace.uniqueBytes, rate: rate), seed: seed)
        }
        simulator.replay(trace)
        self.init(
            name: strategy.description,
            points: simulator.results.map {
                Point(size: Double($0.capacity) / rate, missRatio: 1 - $0.hitRatio(measure))
            }
        )
    }

    /// The miss ratio at a size; between two points, interpolated linearly over the logarithm of the size.
    ///
    /// nil outside the points: it does not extrapolate.
    public func missRatio(at size: Double) -> Double? {
        guard let upper = points.firstIndex(where: { $0.size >= size }) else { return nil }
        let right = points[upper]
        if right.size == size { return right.missRatio }
        guard upper > 0, size > 0 else { return nil }
        let left = points[upper - 1]
        let share = Logarithm.ten(size / left.size) / Logarithm.ten(right.size / left.size)
        return left.missRatio + (right.missRatio - left.missRatio) * share
    }

    /// The smallest size among the points whose miss ratio is at most this one; nil if there is none.
    public func smallestSize(missingAtMost ratio: Double) -> Double? {
        points.first { $0.missRatio <= ratio }?.size
    }
}

/// A cache size as people write it: bytes, or a share of the bytes of all keys in a trace.
public struct CacheSize: Sendable, Hashable, CustomStringConvertible {
    private enum Form: Sendable, Hashable {
        case bytes(Int)
        case share(Double)
    }

    private let form: Form
    /// The size as written: `1%`, `64MB`.
    public let description: String

    private static let units: [(name: String, bytes: Double)] = [
        ("KIB", 0x1p10), ("MIB", 0x1p20), ("GIB", 0x1p30), ("TIB", 0x1p40),
        ("KB", 1e3), ("MB", 1e6), ("GB", 1e9), ("TB", 1e12), ("B", 1), ("", 1),
    ]

    /// Parses `0.1%`, `64MB` (millions), `1GiB` (powers of 1,024), `4096` (bytes); case does not matter.
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
                let bytes = Self.bytes(upper.dropLast(unit.name.count), unit: unit.bytes),
                bytes > 0
            else { return nil }
            form = .bytes(bytes)
        }
    }

    /// Twenty sizes from 0.01 % to 100 % of the unique bytes, each larger than the previous one by the same factor.
    ///
    /// Their names and their shares have three significant digits.
    public static let curve: [CacheSize] = [
        "0.01", "0.0162", "0.0264", "0.0428", "0.0695", "0.113", "0.183", "0.298", "0.483", "0.785", "1.27", "2.07",
        "3.36",
        "5.46", "8.86", "14.4", "23.4", "37.9", "61.6", "100",
    ].compactMap { CacheSize($0 + "%") }

    /// Parses sizes separated by commas, without duplicates; `curve` stands for those of ``curve``. nil if one of them is not a
    /// size.
    public static func list(_ text: String) -> [CacheSize]? {
        var sizes: [CacheSize] = []
        for word in text.split(separator: ",", omittingEmptySubsequences: false) {
            let found = word.lowercased() == "curve" ? curve : [CacheSize(String(word))].compactMap { $0 }
            if found.isEmpty { return nil }
            sizes += found.filter { !sizes.contains($0) }
        }
        return sizes
    }

    /// The bytes, for a trace whose keys together take `uniqueBytes`.
    ///
    /// - Parameters:
    ///   - uniqueBytes: the sum of the keys' bytes, each counted once.
    ///   - rate: the share of all keys in the trace, if it is a sample. A size in bytes is reduced by it, so that it represents the
    ///     whole; a share of the unique bytes is the same for a sample. 1 by default; more than 1, and NaN, count as 1, and
    ///     less than 0 as 0.
    public func bytes(uniqueBytes: Int, rate: Double = 1) -> Int {
        let rate = Self.share(rate)
        let bytes: Double
        switch form {
        case .bytes(let count) where rate == 1: return count
        case .bytes(let count): bytes = Double(count) * rate
        case .share(let share): bytes = Double(uniqueBytes) * share
        }
        return Int(exactly: bytes.rounded(.down)) ?? .max
    }

    /// The rate of a sample as it counts.
    fileprivate static func share(_ rate: Double) -> Double { rate < 1 ? max(rate, 0) : 1 }

    /// This many units, in bytes; nil if it is not a number, or more than `Int.max`.
    private static func bytes(_ text: Substring, unit: Double) -> Int? {
        guard let count = number(text) else { return nil }
        // A large whole number may be none that a Double can be.
        guard let whole = Int(text) else { return Int(exactly: (count * unit).rounded()) }
        let (bytes, overflows) = whole.multipliedReportingOverflow(by: Int(unit))
        return overflows ? nil : bytes
    }

    /// A decimal number without sign or exponent.
    private static func number(_ text: Substring) -> Double? {
        let isPlain = text.utf8.allSatisfy {
            (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) || $0 == UInt8(ascii: ".")
        }
        return isPlain ? Double(text) : nil
    }
}
