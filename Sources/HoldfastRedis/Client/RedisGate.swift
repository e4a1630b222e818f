// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Redis
    /// Decides whether a server may be asked: after a failure it is left alone for a while, and then one caller finds out
    /// whether it is back.
    ///
    /// A value without effects; times are instants of a clock that the caller reads.
    struct RedisGate: Sendable {
        /// The first wait after a failure.
        let firstRest: Duration
        /// The longest wait.
        let longestRest: Duration

        private var failures = 0
        private var closedUntil: ContinuousClock.Instant?
        private var isProbing = false

        init(firstRest: Duration, longestRest: Duration) {
            self.firstRest = firstRest
            self.longestRest = longestRest
        }

        /// Whether everyone may ask.
        var isOpen: Bool { closedUntil == nil }

        /// Whether this caller may ask; if it may while the gate is closed, it is the one that finds out.
        mutating func admits(now: ContinuousClock.Instant) -> Bool {
            guard let closedUntil else { return true }
            guard now >= closedUntil, !isProbing else { return false }
            isProbing = true
            return true
        }

        /// The server answered.
        mutating func noteSuccess() {
            failures = 0
            closedUntil = nil
            isProbing = false
        }

        /// The server did not answer, or not in time.
        ///
        /// Failures of commands sent before the gate closed do not lengthen the wait.
        ///
        /// - Parameter share: a random number from 0 to 1, so that a fleet does not return all at once.
        mutating func noteFailure(now: ContinuousClock.Instant, share: Double) {
            if let closedUntil, !isProbing, now < closedUntil { return }
            isProbing = false
            failures = min(failures + 1, 30)
            var rest = firstRest
            for _ in 1..<failures where rest < longestRest { rest *= 2 }
            rest = min(rest, longestRest)
            closedUntil = now.advanced(by: rest * (0.5 + 0.5 * min(1, max(0, share))))
        }
    }
#endif
