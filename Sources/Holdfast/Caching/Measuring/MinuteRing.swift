// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Counts since the start, together with what they were at the beginning of each of the last minutes.
///
/// A window is the difference of two of them, so that counting costs one look at the minute more and no second set of counts.
struct MinuteRing: Sendable {
    private struct Mark: Sendable {
        let minute: Int64
        /// What had been counted before it.
        let counts: CacheStatistics
    }

    /// What was counted since the start.
    private(set) var counts = CacheStatistics()
    /// How many minutes there are beside the running one.
    let length: Int
    /// Minutes in which nothing was counted have none.
    private var marks: [Mark] = []
    /// Where the oldest is, once all places are taken.
    private var oldest = 0
    private var running = Int64.min

    /// - Parameter length: how many minutes are kept beside the running one; at least 1.
    init(length: Int) {
        self.length = max(1, length)
    }

    /// Counts in a minute; one that is over already counts as the running one.
    mutating func count(in minute: Int64, _ change: (inout CacheStatistics) -> Void) {
        if minute > running { begin(minute) }
        change(&counts)
    }

    private mutating func begin(_ minute: Int64) {
        running = minute
        let mark = Mark(minute: minute, counts: counts)
        if marks.count <= length {
            marks.append(mark)
        } else {
            marks[oldest] = mark
            oldest = (oldest + 1) % marks.count
        }
    }

    /// What was counted in the minutes of `minutes`, of those that are kept.
    func counts(in minutes: Range<Int64>) -> CacheStatistics {
        before(minutes.upperBound) - before(minutes.lowerBound)
    }

    /// What had been counted before a minute, or before the oldest one that is known.
    private func before(_ minute: Int64) -> CacheStatistics {
        for offset in marks.indices {
            let mark = marks[(oldest + offset) % marks.count]
            if mark.minute >= minute { return mark.counts }
        }
        return counts
    }
}
