// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Holdfast
public import HoldfastStorage
private import Synchronization

/// The leases of a store that several caches share, in one process and on a clock that a test moves.
///
/// Hand the same one to the stores of all caches that are to be a fleet.
public final class SimulatedLeases: FillLeasing {
    struct Name: Hashable {
        let key: StoreKey
        let variant: StoreKey
    }

    private struct State {
        var current: [Name: SimulatedLease] = [:]
        var isAvailable = true
    }

    /// Counts the leases that were asked for, those that were granted, and the waits for another one's.
    public let asked = CountWatch()
    public let granted = CountWatch()
    public let waits = CountWatch()
    /// Counts the leases that were kept for longer.
    public let renewed = CountWatch()

    /// For how long it is remembered that a lease ended as stored.
    static let memory = Duration.seconds(10)

    let clock: any HoldfastClock
    private let state = Mutex(State())

    /// Leases that run out by `clock`.
    public init(clock: any HoldfastClock) {
        self.clock = clock
    }

    /// Whether the store answers; once it does not, all waits end.
    public var isAvailable: Bool {
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

    /// How many leases are out.
    public var count: Int {
        let now = clock.now
        return state.withLock { $0.current.values.count { $0.isOut(now: now) } }
    }

    public func lease(_ key: StoreKey, variant: StoreKey, for length: Duration) async -> LeaseAnswer {
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

/// One lease as the simulated store knows it.
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

    /// The store has forgotten it.
    func lose() {
        state.withLock { $0.isLost = true }
        ended.increment()
    }

    func seen(by leases: SimulatedLeases) -> any ForeignLease { Seen(lease: self, waits: leases.waits) }

    func holder(_ renewed: CountWatch, followsFill: Bool) -> any FillLease {
        Holder(self, renewed, followsFill: followsFill)
    }

    /// The holder's end.
    private final class Holder: FillLease {
        let followsFill: Bool
        private let lease: SimulatedLease
        private let renewed: CountWatch

        init(_ lease: SimulatedLease, _ renewed: CountWatch, followsFill: Bool) {
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
                // What has run out is over, whatever came of it.
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
                // Either the lease ends, or its time is over, or it was renewed meanwhile.
                try? await withDeadline(until, on: lease.clock, discard: { _ in }) { [lease] in
                    try await lease.ended.wait(for: 1)
                }
            }
            return nil
        }
    }
}
