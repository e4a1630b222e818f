// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// How attempts ended within a sliding window: ten counters in a ring, each for a tenth of it.
struct CircuitCounts: Sendable {
    private struct Bucket: Sendable {
        var number: Int64 = .min
        var failures = 0
        var total = 0
    }

    private static let bucketCount = 10

    private let bucketLength: Duration
    private var buckets = [Bucket](repeating: Bucket(), count: bucketCount)

    init(window: Duration) {
        bucketLength = max(window, .milliseconds(1)) / CircuitCounts.bucketCount
    }

    mutating func record(succeeded: Bool, now: Duration) {
        let number = bucketNumber(now)
        let index = Int(number % Int64(CircuitCounts.bucketCount))
        if buckets[index].number != number { buckets[index] = Bucket(number: number) }
        buckets[index].total += 1
        if !succeeded { buckets[index].failures += 1 }
    }

    /// Failures and attempts of the last ten tenths, the running one included.
    func totals(now: Duration) -> (failures: Int, total: Int) {
        let newest = bucketNumber(now)
        let oldest = newest - Int64(CircuitCounts.bucketCount) + 1
        var sums = (failures: 0, total: 0)
        for bucket in buckets where (oldest...newest).contains(bucket.number) {
            sums.failures += bucket.failures
            sums.total += bucket.total
        }
        return sums
    }

    mutating func removeAll() {
        buckets = [Bucket](repeating: Bucket(), count: CircuitCounts.bucketCount)
    }

    private func bucketNumber(_ now: Duration) -> Int64 {
        // Times are of a clock that begins near 0; before that, everything is of the first bucket.
        Int64(clamping: max(now, .zero).attoseconds / bucketLength.attoseconds)
    }
}
