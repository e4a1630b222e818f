// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// How long a tombstone or mark has to outlive the segment it lies in.
///
/// Its horizon is the highest segment number that existed when its order was taken. Once no segment up to that number is
/// left on the disk, there is nothing more to kill. That rests on three rules, each of which the model of recovery shows
/// to be needed:
///
/// - An order, its place and its horizon are taken in one step, so that every record of a lower order has its place in a
///   segment up to the horizon.
/// - A copy gets its place in the step that looks at its row, under the lock of the shard in which a tombstone takes the row
///   away, and asks for marks after that: a copy made later than the horizon is of nothing that was killed.
/// - A segment counts until its file is unlinked, and the next reclaim begins after that.
struct TombstoneHorizon: Sendable, Hashable {
    private let lowestOther: UInt64?

    /// What holds while the segment `reclaimed` is about to go.
    ///
    /// - Parameter segments: the numbers of all segment files that are not yet unlinked, in any order; the one that goes
    ///   may be among them.
    init(segments: some Sequence<UInt64>, reclaimed: UInt64) {
        lowestOther = segments.reduce(nil) { lowest, number in
            number == reclaimed ? lowest : min(lowest ?? number, number)
        }
    }

    /// Whether a tombstone or mark of this horizon has to be carried forward.
    func carries(_ horizon: UInt64) -> Bool {
        lowestOther.map { $0 <= horizon } ?? false
    }

    /// The lowest segment number that stays: marks whose horizon is below it can be forgotten.
    var lowestLeft: UInt64 { lowestOther ?? .max }
}
