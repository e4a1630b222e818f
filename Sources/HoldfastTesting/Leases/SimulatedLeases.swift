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
