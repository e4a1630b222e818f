// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Decides when a store that keeps failing should rest, and when it has rested long enough.
///
/// Several failures in a row begin a rest. It ends at an instant of the caller's clock, or after a number of refused
/// operations, whichever comes first, so that a clock that stands still or runs backwards cannot hold it for ever. The first
/// failure after a rest begins another; a success ends the count.
struct RestDecision: Sendable, Hashable {
    static let failuresBeforeRest = 4
    static let restMilliseconds: Int64 = 5_000
    static let refusals = 64

    private var failuresInARow = 0
    private var restEnds: StoreInstant?
    private var refusalsLeft = 0

    /// Notes that the device refused an operation.
    mutating func failed(now: StoreInstant) {
        failuresInARow = min(failuresInARow + 1, Self.failuresBeforeRest)
        guard failuresInARow == Self.failuresBeforeRest else { return }
        let (end, overflow) = now.milliseconds.addingReportingOverflow(Self.restMilliseconds)
        restEnds = StoreInstant(milliseconds: overflow ? .max : end)
        refusalsLeft = Self.refusals
    }

    /// Notes that the device did as it was told.
    mutating func succeeded() {
        failuresInARow = 0
        restEnds = nil
    }

    /// Whether an operation may go to the device; one without a clock only counts down.
    mutating func admits(now: StoreInstant?) -> Bool {
        guard let end = restEnds else { return true }
        if refusalsLeft > 0, now.map({ $0 < end }) ?? true {
            refusalsLeft -= 1
            return false
        }
        restEnds = nil
        return true
    }

    /// Whether the store rests, without counting the question.
    func rests(now: StoreInstant) -> Bool {
        guard let end = restEnds else { return false }
        return refusalsLeft > 0 && now < end
    }
}
