// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Decides which segment goes, what of it is carried forward, and where new entries begin.
///
/// The small log gives its oldest segment; of the main log that one goes which holds most of what is
/// dead or worth little, for its age.
/// Of an entry the worth decides, against lines drawn through a sample of all entries. docs/decisions/0016 has the figures.
struct ReclaimJudge: Sendable {
    /// A segment that may go.
    struct Segment: Sendable {
        let slot: UInt16
        /// Its bytes and those of its blobs.
        let weight: Int
    }

    /// An entry of the segment that goes.
    struct Candidate: Sendable {
        let worth: Int32
        /// What its going frees.
        let bytes: Int
        /// Whether it was used since it was written or carried.
        let wasUsed: Bool
        var isPinned = false
        /// What carrying it takes in the main log; a blob stays where it is.
        var copyBytes = 0
    }

    /// Every so many reclaims of the main log its oldest segment goes whatever it holds, so that no tombstone is kept for ever.
    static let oldestEvery = 16

    /// The lines.
    let sample: WorthSample
    /// The small log's part of the bytes.
    let share: Double
    /// How many segments of the main log were reclaimed before.
    let turn: Int

    /// Whether the small log gives a segment; nil when neither has one to give.
    ///
    /// - Parameters:
    ///   - small: the bytes of the small log's segments, the one being written included, and of what is to enter it.
    ///   - total: the bytes of both logs.
    func log(small: Int, total: Int, canTakeSmall: Bool, canTakeMain: Bool) -> LogKind? {
        guard canTakeSmall || canTakeMain else { return nil }
        guard canTakeSmall, canTakeMain else { return canTakeSmall ? .small : .main }
        return Double(small) > Double(total) * share ? .small : .main
    }

    /// Which of the main log's segments goes, by its index; they stand from the oldest to the newest, one at least.
    func victim(ofMain segments: [Segment]) -> Int {
        if turn % Self.oldestEvery == Self.oldestEvery - 1 { return 0 }
        var best = (index: 0, yield: -1.0)
        for (index, segment) in segments.enumerated() {
            // What came last has had the least time to prove itself.
            let age = Double(segments.count - index)
            let yield = sample.yield(of: segment.slot, weight: segment.weight) * age
            if yield > best.yield { best = (index, yield) }
        }
        return best.index
    }

    /// Which entries of a segment are carried forward; pinned ones always. Three tenths of a segment of the main log are freed at least,
    /// pinned entries aside, the least worthy and of equals the oldest first.
    ///
    /// - Parameters:
    ///   - candidates: the entries, in the order in which they lie there.
    ///   - weight: the segment's weight.
    ///   - room: the bytes that copies may take; of what does not fit the least worthy goes.
    func carries(_ candidates: [Candidate], of log: LogKind, weight: Int, room: Int = .max) -> [Bool] {
        var carries = candidates.map { candidate in
            if candidate.isPinned { return true }
            if log == .small { return candidate.wasUsed || candidate.worth > sample.admission }
            return candidate.worth > sample.eviction
        }
        var kept = 0
        var copied = 0
        for (index, candidate) in candidates.enumerated() where carries[index] {
            kept = kept.addingReportingOverflow(candidate.bytes).partialValue
            copied += candidate.copyBytes
        }
        let limit = log == .small ? Int.max : min(max(0, weight - 1), max(0, weight) / 10 * 7)
        guard kept > limit || copied > room else { return carries }
        let order = candidates.indices.sorted { left, right in
            (candidates[left].worth, left) < (candidates[right].worth, right)
        }
        for index in order where carries[index] && !candidates[index].isPinned {
            if kept <= limit, copied <= room { break }
            carries[index] = false
            kept -= candidates[index].bytes
            copied -= candidates[index].copyBytes
        }
        return carries
    }

    /// Which log a new entry enters, given what its key is worth and the line of that name at the last reclaim.
    static func log(ofNew worth: Int32, promotion: Int32) -> LogKind {
        worth > promotion ? .main : .small
    }
}
