// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// The bytes on the disk against the capacity: nothing is put there that was not granted before.
///
/// What is removed while someone still reads it stays counted until its last descriptor is closed.
final class SpaceLedger: Sendable {
    private struct State {
        var used: Int
    }

    let capacity: Int
    private let state: Mutex<State>

    /// A ledger that starts with what lies on the disk already.
    init(capacity: Int, used: Int) {
        self.capacity = capacity
        state = Mutex(State(used: used))
    }

    /// Bytes granted now.
    var used: Int { state.withLock { $0.used } }

    /// Grants bytes, unless fewer than `leaving` would be left.
    func grant(_ count: Int, leaving reserve: Int = 0) -> Bool {
        state.withLock { state in
            let (sum, overflow) = state.used.addingReportingOverflow(max(0, count))
            guard !overflow, sum <= capacity - reserve else { return false }
            state.used = sum
            return true
        }
    }

    /// Counts bytes that are there, granted or not.
    func count(_ count: Int) {
        state.withLock { $0.used = $0.used.addingSaturated(max(0, count)) }
    }

    /// Gives bytes back.
    func release(_ count: Int) {
        state.withLock { $0.used = $0.used.addingSaturated(-max(0, count)) }
    }

    /// Rounded up to whole blocks of 4 KiB, as file systems give them out.
    static func blocks(_ count: Int) -> Int {
        count > Int.max - 4_095 ? Int.max / 4_096 * 4_096 : (count + 4_095) / 4_096 * 4_096
    }
}

extension Int {
    /// The sum, or the number nearest to it. Files may claim any length, so that their sum has no bound.
    func addingSaturated(_ other: Int) -> Int {
        let (sum, overflow) = addingReportingOverflow(other)
        return overflow ? (other < 0 ? .min : .max) : sum
    }
}
