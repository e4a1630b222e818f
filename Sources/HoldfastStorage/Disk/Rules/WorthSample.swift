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
    private let sums: [UInt16: Sum]
    private let scale: Double

    private struct Sum: Sendable {
        var bytes = 0.0
        var loss = 0.0
    }

    /// Of the bytes drawn, the share below the lines.
    private static let admissionShare = 0.1
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
        var sums: [UInt16: Sum] = [:]
        for draw in sorted {
            let bytes = Double(draw.bytes)
            sums[draw.segment, default: Sum()].bytes += bytes
            if draw.worth <= eviction {
                sums[draw.segment, default: Sum()].loss += bytes * Self.ease(eviction - draw.worth)
            }
        }
        self.sums = sums
        scale = Double(max(entries, draws.count)) / Double(max(1, draws.count))
    }

    /// The part of a segment, 0 to 1, that reclaiming would give: what is dead in it, and what is worth little, the more
    /// the less it is worth.
    func yield(of segment: UInt16, weight: Int) -> Double {
        guard weight > 0 else { return 1 }
        let sum = sums[segment] ?? Sum()
        let dead = max(0, Double(weight) - sum.bytes * scale)
        return min(1, (dead + sum.loss * scale) / Double(weight))
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
