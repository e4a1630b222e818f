// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// How long a tombstone or mark has to outlive the segment it lies in.
///
/// Its horizon is the highest segment number that existed when its order was taken, in the same step in which the order was:
/// every record of a lower order, and every copy of one, lies in a segment up to that number. Once none of these is left
/// on the disk, there is nothing more to kill.
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
