// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// When the copies of one request are sent: the first at once, each further one a delay after the one before.
///
/// A value that is told what happens; times are lengths since any fixed origin. The schedule is gRPC's (proposal A6): a
/// failure that another copy may mend sends the next at once, a server's pushback puts it off, an answer ends the plan.
package struct HedgePlan: Sendable, Hashable {
    /// The most copies of one request, whatever is asked for.
    package static let mostCopies = 5

    private let delay: Duration
    private let maxCopies: Int

    /// How many copies were sent.
    package private(set) var sent = 0

    /// How many copies have not ended.
    package private(set) var inFlight = 0

    /// When the next copy is due; nil when none follows.
    package private(set) var nextSend: Duration?

    /// A plan whose first copy is due at `start`.
    ///
    /// - Parameters:
    ///   - delay: the time between copies; 0 sends all at once.
    ///   - maxCopies: the most copies, the first included; at least 1, and more than 5 counts as 5.
    package init(delay: Duration, maxCopies: Int, start: Duration) {
        self.delay = max(delay, .zero)
        self.maxCopies = min(max(maxCopies, 1), HedgePlan.mostCopies)
        nextSend = start
    }

    /// Takes note that the copy that was due was sent.
    package mutating func copySent(now: Duration) {
        sent += 1
        inFlight += 1
        nextSend = sent < maxCopies ? now + delay : nil
    }

    /// Takes note that the copy that was due may not be sent, and none after it.
    package mutating func stop() {
        nextSend = nil
    }

    /// Takes note that a copy failed in a way that another one may mend.
    ///
    /// - Parameter pushback: how long the server asks to be left alone: nil, it asks for nothing, and the next copy is due
    ///   at once; negative, no copy follows.
    package mutating func copyFailed(pushback: Duration? = nil, now: Duration) {
        inFlight = max(0, inFlight - 1)
        guard nextSend != nil else { return }
        switch pushback {
        case nil: nextSend = now
        case .some(let wait) where wait < .zero: nextSend = nil
        case .some(let wait): nextSend = now + wait
        }
    }
}
