// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Decides which segment goes and what of it is carried forward, as in S3-FIFO (SOSP 2023).
///
/// One judge serves one segment: it counts what it carried, so that reclaiming always frees at least a quarter of what
/// the segment weighed, pinned entries aside.
struct ReclaimJudge: Sendable {
    /// The small log holds at most this share of all bytes, in hundredths, before its oldest segment goes.
    static let smallShare = 15

    /// What happens to an entry.
    enum Verdict: Sendable, Hashable {
        /// It is copied to the main log, where its row starts with this many hits.
        case carry(hits: UInt8)
        /// It goes; whether its key is remembered, so that it enters the main log when it comes back.
        case evict(isRemembered: Bool)
        /// It goes, being of no use to anyone.
        case drop
    }

    private let log: LogKind
    private let limit: Int
    private var carried = 0

    /// A judge of a segment of this log in which records of `weight` bytes lie, dead ones included.
    init(of log: LogKind, weight: Int) {
        self.log = log
        let weight = max(0, weight)
        limit = weight / 4 * 3 + weight % 4 * 3 / 4
    }

    /// Which log gives its oldest segment: the small one while it holds more than its share, else the main one; where
    /// one has no segment to give, the other; nil when neither has.
    ///
    /// - Parameters:
    ///   - small: the bytes of the small log's segments, the one being written included.
    ///   - total: the bytes of both logs.
    static func log(small: Int, total: Int, canTakeSmall: Bool, canTakeMain: Bool) -> LogKind? {
        guard canTakeSmall || canTakeMain else { return nil }
        guard canTakeSmall, canTakeMain else { return canTakeSmall ? .small : .main }
        return small > total / 100 * smallShare + total % 100 * smallShare / 100 ? .small : .main
    }

    /// Judges an entry whose row points to the segment.
    ///
    /// - Parameters:
    ///   - row: its row in the index.
    ///   - isUseless: whether it can no longer be served or revalidated, or a mark has killed it.
    ///   - weight: the bytes that its going frees, those of its blob counted.
    mutating func judge(_ row: IndexRow, isUseless: Bool, weight: Int) -> Verdict {
        if isUseless { return .drop }
        let hits = log == .main && row.hits > 0 ? row.hits - 1 : 0
        if row.isPinned { return .carry(hits: hits) }
        let (sum, overflow) = carried.addingReportingOverflow(max(0, weight))
        if row.hits > 0, !overflow, sum <= limit {
            carried = sum
            return .carry(hits: hits)
        }
        return .evict(isRemembered: log == .small)
    }
}
