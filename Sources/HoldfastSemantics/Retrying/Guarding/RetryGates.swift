// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The gates of one origin: closed by a server that asked for a pause, each for one credential.
///
/// A value that is told the time; it holds a bounded number of gates, of which those that open first go first.
package struct RetryGates: Sendable, Hashable {
    /// A closed gate.
    package struct Gate: Sendable, Hashable {
        /// When it opens, since the clock's origin.
        package var opens: Duration
        /// How far the calls behind it are spread after it opened: half of what the server asked, 5 s at most, so that
        /// they do not come back all at once.
        package var spread: Duration
        /// When a probe was let through, or the gate closed.
        package var lastProbe: Duration = .zero
    }

    /// The most gates that are kept.
    package static let limit = 256

    private var gates: [Int: Gate] = [:]

    /// No gate closed.
    package init() {}

    /// Whether all gates are open, as far as is known without looking at the time.
    package var isEmpty: Bool { gates.isEmpty }

    /// The longest a gate stays closed, whatever a server says: an hour.
    package static let longestPause: Duration = .seconds(3600)

    /// Closes a gate; one that is closed for longer already stays so.
    ///
    /// - Parameters:
    ///   - credential: whose gate it is.
    ///   - asked: for how long, from `now`.
    package mutating func close(for credential: Int, asked: Duration, now: Duration) {
        guard asked > .zero else { return }
        let asked = min(asked, RetryGates.longestPause)
        let opens = now + asked
        guard gates[credential].map({ $0.opens < opens }) ?? true else { return }
        if gates.count >= RetryGates.limit, gates[credential] == nil { makeRoom(now: now) }
        var gate = Gate(opens: opens, spread: min(asked / 2, .seconds(5)))
        gate.lastProbe = now
        gates[credential] = gate
    }

    /// Whether a call may pass a closed gate as a probe: one in each interval, the first of which begins with the closing.
    ///
    /// For gates that are closed for longer than anybody waits: a server that asks for an hour by mistake is not lost for an
    /// hour.
    package mutating func admitsProbe(for credential: Int, every interval: Duration, now: Duration) -> Bool {
        guard var gate = gates[credential], now - gate.lastProbe >= interval else { return false }
        gate.lastProbe = now
        gates[credential] = gate
        return true
    }

    /// The closed gate of a credential; nil where it is open.
    package mutating func closed(for credential: Int, now: Duration) -> Gate? {
        guard let gate = gates[credential] else { return nil }
        if gate.opens > now { return gate }
        gates[credential] = nil
        return nil
    }

    /// When the last of the closed gates opens; nil where all are open.
    package func lastOpening(now: Duration) -> Duration? {
        gates.values.map(\.opens).max().flatMap { $0 > now ? $0 : nil }
    }

    private mutating func makeRoom(now: Duration) {
        gates = gates.filter { $0.value.opens > now }
        guard gates.count >= RetryGates.limit, let first = gates.min(by: { $0.value.opens < $1.value.opens }) else {
            return
        }
        gates[first.key] = nil
    }
}
