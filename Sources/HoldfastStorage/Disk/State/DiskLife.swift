// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Whether a store takes calls: open, at rest after failures, or closed.
struct DiskLife: Sendable {
    enum Verdict: Sendable {
        case admitted
        case resting
        case closed
    }

    private(set) var isClosed = false
    private var rest = RestJudge()

    /// Whether a call may go on; one without a clock only counts down a rest.
    mutating func admits(now: StoreInstant?) -> Verdict {
        if isClosed { return .closed }
        return rest.admits(now: now) ? .admitted : .resting
    }

    /// Whether a question that may go unanswered is answered; it does not count down a rest.
    func peeks(now: StoreInstant) -> Bool {
        !isClosed && !rest.rests(now: now)
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
