// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Holdfast
public import HoldfastSemantics
private import Synchronization

/// A clock that stands still until it is told to move, so that tests of waits and deadlines run without waiting.
///
/// There are two ways to move it: ``advance(by:)``, or `ManualClock(autoAdvances: true)`, which jumps to the deadline of each
/// sleeper. Sleepers wake in the order of their deadlines, then in the order in which they began to sleep.
public final class ManualClock: HoldfastClock {
    private struct State {
        var waits: [Duration] = []
        var skew: Duration = .zero
    }

    private let start: Timestamp
    private let autoAdvances: Bool
    private let sleepers = WaitingList(MonotonicInstant(sinceOrigin: .zero))
    private let state = Mutex(State())
    private let asleep = CountWatch()

    /// A clock at the time of day `start`, whose monotonic time is at its origin.
    ///
    /// - Parameters:
    ///   - start: the time of day; a moment in November 2023 by default.
    ///   - autoAdvances: whether sleeping moves the clock to the sleeper's deadline at once; only for tests in which one task
    ///     sleeps at a time. The pipeline races a transport that does not enforce deadlines against a sleeping timer: with such a
    ///     transport, set `attemptTimeout` to nil, or the timer wins at once.
    public init(start: Timestamp = Timestamp(secondsSinceEpoch: 1_700_000_000), autoAdvances: Bool = false) {
        self.start = start
        self.autoAdvances = autoAdvances
    }

    public var now: MonotonicInstant { sleepers.reached }

    public var timestamp: Timestamp { start.advanced(by: now.sinceOrigin + state.withLock { $0.skew }) }

    /// The requested length of each sleep so far, in the order in which the sleeps began.
    public var waits: [Duration] { state.withLock { $0.waits } }

    /// How many tasks are sleeping now.
    public var sleeperCount: Int { sleepers.count }

    /// Waits until `count` sleeps in total have begun since the clock was made.
    public func waitForSleeps(_ count: Int) async throws { try await asleep.wait(for: count) }

    /// Moves the clock forward and wakes those whose deadline has come.
    public func advance(by duration: Duration) { sleepers.raise { $0.advanced(by: max(duration, .zero)) } }

    /// Moves the time of day forward or back without moving the monotonic time, as when somebody sets a clock.
    public func skewTimeOfDay(by duration: Duration) { state.withLock { $0.skew += duration } }

    public func sleep(until deadline: MonotonicInstant) async throws {
        try Task.checkCancellation()
        let wait = max(now.duration(to: deadline), .zero)
        state.withLock { $0.waits.append(wait) }
        if autoAdvances { sleepers.raise { max($0, deadline) } }
        try await sleepers.wait(for: deadline) { asleep.increment() }
    }
}

/// A network that a test makes available or unavailable.
public final class ManualConnectivity: Connectivity {
    private let online: Atomic<Bool>
    private let returns = CountWatch()
    private let waits = CountWatch()

    /// A network that is available, or not.
    public init(isOnline: Bool = true) { online = Atomic(isOnline) }

    public var isOnline: Bool { online.load(ordering: .acquiring) }

    /// Makes the network unavailable.
    public func goOffline() { online.store(false, ordering: .releasing) }

    /// Makes the network available and resumes all who wait for it.
    public func goOnline() {
        online.store(true, ordering: .releasing)
        returns.increment()
    }

    /// Waits until `count` tasks in total have begun to wait for the network.
    public func waitForWaits(_ count: Int) async throws { try await waits.wait(for: count) }

    public func waitUntilOnline() async throws {
        let seen = returns.count
        guard !isOnline else { return }
        waits.increment()
        try await returns.wait(for: seen + 1)
    }
}
