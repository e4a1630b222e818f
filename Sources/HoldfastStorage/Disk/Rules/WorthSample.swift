// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The worths of entries drawn at random: where the line runs between what goes and what stays, and which segment holds
/// most of what goes.
struct WorthSample: Sendable {
    /// How many entries are drawn; of no more than this many, all are taken.
    static let size = 512

    /// One entry.
    struct Draw: Sendable {
        let worth: Int32
        /// Bytes, its blob included; at least 1.
        let bytes: Int
        /// The slot of its segment.
        let segment: UInt16
    }

    /// A new entry worth no more goes when the small log is reclaimed.
    let admission: Int32
    /// An entry of the main log worth no more goes.
    let eviction: Int32
    /// A key worth more, when it comes back, is written to the main log at once.
    let promotion: Int32
    /// By the slot of the segment.
    private var sums: [Sum]
    /// Entries that a draw stands for.
    private let scale: Double
    /// The mean bytes of a draw, and the part of them that is worth little.
    private let mean: Double
    private let part: Double

    private struct Sum: Sendable {
        var bytes = 0.0
        var loss = 0.0
    }

    /// Of the bytes drawn, the share below the lines.
    private static let admissionShare = 0.15
    private static let evictionShare = 0.3

    /// What `draws` say.
    ///
    /// - Parameters:
    ///   - entries: how many entries there are in all; the draws stand for them.
    init(_ draws: [Draw], entries: Int) {
        let sorted = draws.sorted { $0.worth < $1.worth }
        let total = sorted.reduce(0.0) { $0 + Double($1.bytes) }
        admission = Self.line(sorted, below: total * Self.admissionShare)
        let eviction = Self.line(sorted, below: total * Self.evictionShare)
        self.eviction = eviction
        promotion = sorted.isEmpty ? .max : sorted[sorted.count / 2].worth
        var sums = [Sum](repeating: Sum(), count: draws.reduce(0) { max($0, Int($1.segment) + 1) })
        for draw in draws {
            let bytes = Double(draw.bytes)
            sums[Int(draw.segment)].bytes += bytes
            if draw.worth <= eviction { sums[Int(draw.segment)].loss += bytes * Self.ease(eviction - draw.worth) }
        }
        self.sums = sums
        mean = total / Double(max(1, draws.count))
        part = sums.reduce(0.0) { $0 + $1.loss } / max(1, total)
        scale = Double(max(entries, draws.count)) / Double(max(1, draws.count))
    }

    /// The part of a segment, 0 to 1, that reclaiming would give: what is dead in it, and what is worth little, the more
    /// the less it is worth.
    ///
    /// Few draws fall into one segment. So the part of little worth leans towards that of all segments, and bytes count as dead
    /// only as far as chance would not have them missing.
    func yield(of segment: UInt16, weight: Int) -> Double {
        guard weight > 0 else { return 1 }
        let sum = segment < sums.count ? sums[Int(segment)] : Sum()
        let part = (sum.loss + mean * part) / max(1, sum.bytes + mean)
        let expected = Double(weight) / max(1, mean * scale)
        let live = sum.bytes * scale / Double(weight) + 1.5 / (expected + 1).squareRoot()
        let dead = max(0, 1 - live)
        return min(1, dead + (1 - dead) * part)
    }

    /// Notes that a segment is gone: its slot will be another's.
    mutating func forget(_ segment: UInt16) {
        if segment < sums.count { sums[Int(segment)] = Sum() }
    }

    /// How lightly an entry is given up that lies so far below the line: from 0.2 to 1.
    private static func ease(_ distance: Int32) -> Double {
        min(1, 0.2 + 0.8 * Double(distance) / 1_024)
    }

    private static func line(_ sorted: [Draw], below bytes: Double) -> Int32 {
        var sum = 0.0
        for draw in sorted {
            sum += Double(draw.bytes)
            if sum >= bytes { return draw.worth }
        }
        return .min
    }
}
