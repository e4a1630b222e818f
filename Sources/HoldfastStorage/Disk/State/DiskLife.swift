// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Whether a store takes calls: open, at rest after failures, or closed.
struct DiskLife: Sendable {
    enum Verdict: Sendable {
        case admitted
        case resting
        /// The directory is gone, or another store's.
        case displaced
        case closed
    }

    private(set) var isClosed = false
    private(set) var isDisplaced = false
    private var rest = RestDecision()

    /// Whether a call may go on; one without a clock only counts down a rest.
    mutating func admits(now: StoreInstant?) -> Verdict {
        if isClosed { return .closed }
        if isDisplaced { return .displaced }
        return rest.admits(now: now) ? .admitted : .resting
    }

    /// Whether a question that may go unanswered is answered; it does not count down a rest.
    func peeks(now: StoreInstant) -> Bool {
        !isClosed && !isDisplaced && !rest.rests(now: now)
    }

    /// Notes that the directory is not this store's any more, for good.
    mutating func displace() {
        isDisplaced = true
    }

    mutating func failed(now: StoreInstant) {
        rest.failed(now: now)
    }

    mutating func succeeded() {
        rest.succeeded()
    }

    /// - Returns: false when it was closed already.
    mutating func close() -> Bool {
        defer { isClosed = true }
        return !isClosed
    }
}
