// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Holdfast
public import HoldfastSemantics
private import Synchronization

/// A clock that stands still until it is told to move: tests of waits and deadlines run without waiting.
///
/// Two ways to move it: ``advance(by:)`` by hand, or `ManualClock(autoAdvances: true)`, which jumps to the deadline of
/// whoever sleeps. Sleepers wake in the order of their deadlines, then in the order in which they fell asleep.
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

    /// A clock that stands at `start` of the day and at its origin.
    ///
    /// - Parameters:
    ///   - start: the time of day; a moment in November 2023 by default.
    ///   - autoAdvances: whether sleeping moves the clock to the sleeper's deadline at once; only for tests in which a single
    ///     task sleeps at a time. The pipeline races a transport that does not enforce deadlines against a sleeping timer: with
    ///     such a transport set `attemptTimeout` to nil, or the timer wins at once.
    public init(start: Timestamp = Timestamp(secondsSinceEpoch: 1_700_000_000), autoAdvances: Bool = false) {
        self.start = start
        self.autoAdvances = autoAdvances
    }

    public var now: MonotonicInstant { sleepers.reached }

    public var timestamp: Timestamp {
        start.advanced(by: now.sinceOrigin + state.withLock { $0.skew })
    }

    /// How long each sleep so far was asked to last, in the order of falling asleep.
    public var waits: [Duration] {
        state.withLock { $0.waits }
    }

    /// How many tasks sleep right now.
    public var sleeperCount: Int { sleepers.count }

    /// Waits until, in total, `count` sleeps have begun since the clock was made.
    public func waitForSleeps(_ count: Int) async throws {
        try await asleep.wait(for: count)
    }

    /// Moves the clock on and wakes those whose deadline has come.
    public func advance(by duration: Duration) {
        sleepers.raise { $0.advanced(by: max(duration, .zero)) }
    }

    /// Sets the time of day forward or back without moving the monotonic time, as people do.
    public func skewTimeOfDay(by duration: Duration) {
        state.withLock { $0.skew += duration }
    }

    public func sleep(until deadline: MonotonicInstant) async throws {
        try Task.checkCancellation()
        let wait = max(now.duration(to: deadline), .zero)
        state.withLock { $0.waits.append(wait) }
        if autoAdvances { sleepers.raise { max($0, deadline) } }
        try await sleepers.wait(for: deadline) { asleep.increment() }
    }
}

/// A network that is there or not as a test says.
public final class ManualConnectivity: Connectivity {
    private let online: Atomic<Bool>
    private let returns = CountWatch()
    private let waits = CountWatch()

    /// A network that is there, or not.
    public init(isOnline: Bool = true) {
        online = Atomic(isOnline)
    }

    public var isOnline: Bool { online.load(ordering: .acquiring) }

    /// Takes the network away.
    public func goOffline() {
        online.store(false, ordering: .releasing)
    }

    /// Brings the network back and lets go of all who wait for it.
    public func goOnline() {
        online.store(true, ordering: .releasing)
        returns.increment()
    }

    /// Waits until, in total, `count` tasks have begun to wait for the network.
    public func waitForWaits(_ count: Int) async throws {
        try await waits.wait(for: count)
    }

    public func waitUntilOnline() async throws {
        let seen = returns.count
        guard !isOnline else { return }
        waits.increment()
        try await returns.wait(for: seen + 1)
    }
}
