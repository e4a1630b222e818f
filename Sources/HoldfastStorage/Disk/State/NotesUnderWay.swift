// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// The tombstones and marks whose places are reserved and whose bytes are being written.
///
/// A row is gone as soon as its tombstone is reserved, so a segment is not to be unlinked before all that were reserved by
/// then are written: its records, dead as they seem, are all that keeps older ones dead.
final class NotesUnderWay: Sendable {
    /// Which of two counts one is in.
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

    func end(_ ticket: Ticket) {
        state.withLock { $0.counts[ticket.generation] -= 1 }
    }

    /// Whether all that began before the last call that gave true, or before the first, have ended; then those that began
    /// since are what the next calls ask for.
    func turn() -> Bool {
        state.withLock { state in
            guard state.counts[1 - state.generation] == 0 else { return false }
            state.generation = 1 - state.generation
            return true
        }
    }
}
