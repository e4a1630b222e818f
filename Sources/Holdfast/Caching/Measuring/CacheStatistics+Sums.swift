// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastSemantics

/// Counts taken together, and what was counted between two looks.
extension CacheStatistics {
    /// Adds a request that was a fresh hit.
    mutating func addHit(bytes: Int, saved: Duration) {
        requests += 1
        hits += 1
        hitBytes += bytes
        timeSaved += saved
    }

    static func += (left: inout CacheStatistics, right: CacheStatistics) {
        left.combine(right, { $0 &+= $1 }, { $0 += $1 })
    }

    /// What was counted since these were `earlier`.
    static func - (left: CacheStatistics, earlier: CacheStatistics) -> CacheStatistics {
        var difference = left
        difference.combine(earlier, { $0 &-= $1 }, { $0 -= $1 })
        return difference
    }

    private mutating func combine(
        _ other: CacheStatistics,
        _ join: (inout Int, Int) -> Void,
        _ joinTimes: (inout Duration, Duration) -> Void
    ) {
        for figure in CacheStatistics.figures { join(&self[keyPath: figure], other[keyPath: figure]) }
        for (reason, count) in other.reasons { join(&reasons[reason, default: 0], count) }
        for (reason, count) in other.notStored { join(&notStored[reason, default: 0], count) }
        joinTimes(&timeSaved, other.timeSaved)
        reasons = reasons.filter { $0.value != 0 }
        notStored = notStored.filter { $0.value != 0 }
    }

    /// Every count that stands alone.
    private static var figures: [WritableKeyPath<CacheStatistics, Int>] {
        [
            \.requests, \.hits, \.staleHits, \.revalidatingHits, \.errorHits, \.revalidated, \.collapsed, \.misses,
            \.bypasses, \.stored, \.storeFailures, \.backgroundRevalidations, \.backgroundFailures, \.hitBytes,
            \.revalidatedBytes, \.collapsedBytes, \.networkBytes,
        ]
    }
}
