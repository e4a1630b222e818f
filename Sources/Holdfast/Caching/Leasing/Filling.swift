// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastStorage
private import Synchronization

/// The lease of an exchange: kept while the response comes and is being stored, and ended with what came of it.
///
/// Travels in the context of its exchange; what lets that go without a word has failed.
final class Filling: Sendable {
    private struct State {
        var outcome: LeaseOutcome?
        /// What the end of storing will mean.
        var whenStored = LeaseOutcome.stored
        /// Whether a caller is still to say if the response is stored.
        var awaitsVerdict = false
        var renewal: Task<Void, Never>?
    }

    /// Who lives keeps a lease no longer than this.
    private static let longest = Duration.seconds(60)

    private let lease: any FillLease
    private let state = Mutex(State())

    /// - Parameter length: for how long the lease was granted.
    init(_ lease: any FillLease, for length: Duration, _ context: CallContext) {
        self.lease = lease
        let clock = context.clock
        let end = clock.now.advanced(by: Filling.longest)
        let renewal = context.background.start {
            while clock.now < end {
                do {
                    try await clock.sleep(until: clock.now.advanced(by: length / 3))
                } catch {
                    return
                }
                guard await lease.renew(for: length) else { return }
            }
        }
        state.withLock { $0.renewal = renewal }
    }

    deinit { end(.failed) }

    /// What came of the fill, once something has.
    var outcome: LeaseOutcome? { state.withLock { $0.outcome } }

    /// Notes whether the response, once it is stored, can be used without asking the origin.
    func note(isReusable: Bool) {
        state.withLock { $0.whenStored = isReusable ? .stored : .notReusable }
    }

    /// Leaves the ending to a caller who is still to accept the response.
    func awaitVerdict() {
        state.withLock { $0.awaitsVerdict = true }
    }

    /// The response is stored.
    func endStored() {
        end(state.withLock { $0.whenStored })
    }

    /// The exchange is over: what is not stored by now will not be, unless a caller's verdict is awaited.
    func endExchange() {
        if !state.withLock({ $0.awaitsVerdict }) { end(.failed) }
    }

    /// Ends the lease, unless that has been done.
    func end(_ outcome: LeaseOutcome) {
        let (isFirst, renewal): (Bool, Task<Void, Never>?) = state.withLock { state in
            guard state.outcome == nil else { return (false, nil) }
            state.outcome = outcome
            defer { state.renewal = nil }
            return (true, state.renewal)
        }
        guard isFirst else { return }
        renewal?.cancel()
        lease.end(outcome)
    }
}
