// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

package import Holdfast
package import HoldfastStorage
package import HoldfastTesting
private import Synchronization

/// The leases of a store that several caches in one process share, on a clock that a test moves.
///
/// Pass the same instance to the stores of all caches that should share leases.
package final class SimulatedLeases: FillLeasing {
    struct Name: Hashable {
        let key: StoreKey
        let variant: StoreKey
    }

    private struct State {
        var current: [Name: SimulatedLease] = [:]
        var isAvailable = true
    }

    /// Counts the requests for leases, the granted ones, and the waits for another process's lease.
    package let asked = CountWatch()
    package let granted = CountWatch()
    package let waits = CountWatch()
    /// Counts the renewed leases.
    package let renewed = CountWatch()

    /// How long a lease that ended as stored is remembered.
    static let memory = Duration.seconds(10)

    let clock: any HoldfastClock
    private let state = Mutex(State())

    /// Leases that expire by `clock`.
    package init(clock: any HoldfastClock) { self.clock = clock }

    /// Whether the store answers; setting this to false ends all waits.
    package var isAvailable: Bool {
        get { state.withLock { $0.isAvailable } }
        set {
            let lost = state.withLock { state in
                state.isAvailable = newValue
                guard !newValue else { return [SimulatedLease]() }
                defer { state.current = [:] }
                return Array(state.current.values)
            }
            for lease in lost { lease.lose() }
        }
    }

    /// How many leases are held now.
    package var count: Int {
        let now = clock.now
        return state.withLock { $0.current.values.count { $0.isOut(now: now) } }
    }

    package func lease(_ key: StoreKey, variant: StoreKey, for length: Duration) async -> LeaseAnswer {
        asked.increment()
        let name = Name(key: key, variant: variant)
        let now = clock.now
        let answer: LeaseAnswer = state.withLock { state in
            guard state.isAvailable else { return .unavailable }
            let known = state.current[name]
            if let known, known.isOut(now: now) { return .held(known.seen(by: self)) }
            let lease = SimulatedLease(clock, until: now.advanced(by: length))
            state.current[name] = lease
            return .granted(lease.holder(renewed, followsFill: known?.wasStored(lately: now) ?? false))
        }
        if case .granted = answer { granted.increment() }
        return answer
    }
}

/// One lease in the simulated store.
final class SimulatedLease: Sendable {
    private struct State {
        var outcome: LeaseOutcome?
        var isLost = false
        var until: MonotonicInstant
        var endedAt: MonotonicInstant?
    }

    private let clock: any HoldfastClock
    private let state: Mutex<State>
    private let ended = CountWatch()

    init(_ clock: any HoldfastClock, until end: MonotonicInstant) {
        self.clock = clock
        state = Mutex(State(until: end))
    }

    func isOut(now: MonotonicInstant) -> Bool {
        state.withLock { $0.outcome == nil && !$0.isLost && $0.until > now }
    }

    func wasStored(lately now: MonotonicInstant) -> Bool {
        state.withLock { state in
            guard state.outcome == .stored, let end = state.endedAt else { return false }
            return end.advanced(by: SimulatedLeases.memory) > now
        }
    }

    /// The store forgets the lease.
    func lose() {
        state.withLock { $0.isLost = true }
        ended.increment()
    }

    func seen(by leases: SimulatedLeases) -> any ForeignLease { Seen(lease: self, waits: leases.waits) }

    func holder(_ renewed: CountWatch, followsFill: Bool) -> any FillLease {
        Holder(self, renewed: renewed, followsFill: followsFill)
    }

    /// The holder's side.
    private final class Holder: FillLease {
        let followsFill: Bool
        private let lease: SimulatedLease
        private let renewed: CountWatch

        init(_ lease: SimulatedLease, renewed: CountWatch, followsFill: Bool) {
            self.lease = lease
            self.renewed = renewed
            self.followsFill = followsFill
        }

        deinit { end(.failed) }

        func renew(for length: Duration) async -> Bool {
            let now = lease.clock.now
            let isKept = lease.state.withLock { state in
                guard state.outcome == nil, !state.isLost, state.until > now else { return false }
                state.until = now.advanced(by: length)
                return true
            }
            if isKept { renewed.increment() }
            return isKept
        }

        func end(_ outcome: LeaseOutcome) {
            let now = lease.clock.now
            lease.state.withLock { state in
                // An expired lease has ended, whatever the fetch's outcome.
                guard state.outcome == nil, !state.isLost else { return }
                state.outcome = state.until > now ? outcome : .failed
                state.endedAt = now
            }
            lease.ended.increment()
        }
    }

    private struct Seen: ForeignLease {
        let lease: SimulatedLease
        let waits: CountWatch

        func end() async -> LeaseOutcome? {
            waits.increment()
            while !Task.isCancelled {
                let now = lease.clock.now
                let (outcome, isLost, until) = lease.state.withLock { ($0.outcome, $0.isLost, $0.until) }
                if isLost { return nil }
                if let outcome { return outcome }
                if until <= now { return .failed }
                // The lease ended, expired, or was renewed meanwhile.
                try? await withDeadline(until, on: lease.clock, discard: { _ in }) { [lease] in
                    try await lease.ended.wait(for: 1)
                }
            }
            return nil
        }
    }
}
