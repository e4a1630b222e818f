// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// Tombstones and marks that could not be written; they are tried again, since the entries they kill must not come back.
struct PendingTombstones: Sendable {
    private static let maximum = 4_096

    /// The most bytes that they may take in the log, so that a reclaim can always write them; those found at the opening may
    /// take more.
    private let limit: Int
    var all: [Tombstone] = []
    /// Whether there were more than could be remembered.
    var isOverfull = false

    init(_ all: [Tombstone] = [], limit: Int) {
        (self.all, self.limit) = (all, limit)
    }

    /// Whether no tombstone is pending.
    var isEmpty: Bool { all.isEmpty && !isOverfull }

    mutating func append(_ tombstone: Tombstone) {
        // A newer one covers an older one: many of the same prefix would take much memory.
        all.removeAll { $0.order <= tombstone.order && $0.hasTarget(of: tombstone) }
        let bytes = all.reduce(tombstone.byteCount) { $0 + $1.byteCount }
        if all.count < Self.maximum, bytes <= limit { all.append(tombstone) } else { isOverfull = true }
    }
}

/// A tombstone or mark: what it removes, and up to which order.
struct Tombstone: Sendable, Hashable {
    let kind: RecordKind
    let order: UInt64
    let primary: UInt64
    let variant: UInt32
    /// The prefix of a mark.
    var detail = ByteChunk()

    /// The most bytes that it takes in a segment, sealed or not.
    var byteCount: Int { RecordHeader.size + detail.count + 64 + Geometry.unit + TableRow.size }

    /// Whether it removes the same as another one, whatever their orders.
    func hasTarget(of other: Tombstone) -> Bool {
        kind == other.kind && primary == other.primary && variant == other.variant && detail == other.detail
    }
}

/// The tombstones and marks whose places are reserved and whose bytes are being written.
///
/// A row is gone as soon as its tombstone is reserved, so a segment must not be unlinked before all tombstones reserved by then are
/// written: its records, dead as they seem, are all that keeps older ones dead.
final class TombstonesInFlight: Sendable {
    /// Which of two counts it belongs to.
    struct Ticket: Sendable {
        fileprivate let generation: Int
    }

    private struct State {
        var generation = 0
        var counts = [0, 0]
    }

    private let state = Mutex(State())

    func begin() -> Ticket {
        state.withLock { state in
            state.counts[state.generation] += 1
            return Ticket(generation: state.generation)
        }
    }

    func end(_ handle: Ticket) {
        state.withLock { $0.counts[handle.generation] -= 1 }
    }

    /// Whether all that began before the last call that returned true, or before the first call, have ended; then the next calls
    /// ask about those that began since.
    func turn() -> Bool {
        state.withLock { state in
            guard state.counts[1 - state.generation] == 0 else { return false }
            state.generation = 1 - state.generation
            return true
        }
    }
}

/// How long a tombstone or mark must outlive its segment.
///
/// Its horizon is the highest segment number that existed when its order was taken. Once no segment up to that number is left on
/// the disk, there is nothing more to kill. That depends on three rules; the model of recovery shows that each is necessary:
///
/// - An order, its place and its horizon are taken in one step, so that every record of a lower order has its place in a
///   segment up to the horizon.
/// - A copy gets its place in the step that looks at its row, under the lock of the shard in which a tombstone takes the row
///   away, and asks for marks after that: a copy made later than the horizon is of nothing that was killed.
/// - A segment counts until its file is unlinked, and the next reclaim begins after that.
struct TombstoneHorizon: Sendable, Hashable {
    private let lowestOther: UInt64?

    /// The state while the segment `reclaimed` is about to be removed.
    ///
    /// - Parameter segments: the numbers of all segment files that are not unlinked yet, in any order; the one to be removed may be
    ///   among them.
    init(segments: some Sequence<UInt64>, reclaimed: UInt64) {
        lowestOther = segments.reduce(nil) { lowest, number in
            number == reclaimed ? lowest : min(lowest ?? number, number)
        }
    }

    /// Whether a tombstone or mark of this horizon must be carried forward.
    func carries(_ horizon: UInt64) -> Bool {
        lowestOther.map { $0 <= horizon } ?? false
    }

    /// The lowest remaining segment number: marks whose horizon is below it can be dropped.
    var lowestLeft: UInt64 { lowestOther ?? .max }
}

/// A row that has left the index, with the segment that contained its record then.
struct RemovedRow: Sendable {
    let row: IndexRow
    let segment: Segment?
}
