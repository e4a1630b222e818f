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
    private struct Sleeper {
        let id: UInt64
        let deadline: MonotonicInstant
        let continuation: CheckedContinuation<Void, any Error>
    }

    private struct State {
        var now = MonotonicInstant(sinceOrigin: .zero)
        var nextID: UInt64 = 0
        var sleepers: [Sleeper] = []
        var cancelled: Set<UInt64> = []
        var waits: [Duration] = []
        var skew: Duration = .zero
    }

    private let start: Timestamp
    private let autoAdvances: Bool
    private let state = Mutex(State())
    private let asleep = CountWatch()

    /// A clock that stands at `start` of the day and at its origin.
    ///
    /// - Parameter autoAdvances: whether sleeping moves the clock to the sleeper's deadline at once; only for tests in which
    ///   a single task sleeps at a time. The pipeline races a transport that does not enforce deadlines against a sleeping
    ///   timer: with such a transport set `attemptTimeout` to nil, or the timer wins at once.
    public init(start: Timestamp = Timestamp(secondsSinceEpoch: 1_700_000_000), autoAdvances: Bool = false) {
        self.start = start
        self.autoAdvances = autoAdvances
    }

    public var now: MonotonicInstant {
        state.withLock { $0.now }
    }

    public var timestamp: Timestamp {
        state.withLock { start.advanced(by: $0.now.sinceOrigin + $0.skew) }
    }

    /// How long each sleep so far was asked to last, in the order of falling asleep.
    public var waits: [Duration] {
        state.withLock { $0.waits }
    }

    /// How many tasks sleep right now.
    public var sleeperCount: Int {
        state.withLock { $0.sleepers.count }
    }

    /// Waits until, in total, `count` sleeps have begun since the clock was made.
    public func waitForSleeps(_ count: Int) async throws {
        try await asleep.wait(for: count)
    }

    /// Moves the clock on and wakes those whose deadline has come.
    public func advance(by duration: Duration) {
        let due: [Sleeper] = state.withLock { state in
            state.now = state.now.advanced(by: max(duration, .zero))
            let now = state.now
            let due = state.sleepers.filter { $0.deadline <= now }
            state.sleepers.removeAll { $0.deadline <= now }
            return due.sorted { ($0.deadline, $0.id) < ($1.deadline, $1.id) }
        }
        for sleeper in due { sleeper.continuation.resume() }
    }

    /// Sets the time of day forward or back without moving the monotonic time, as people do.
    public func skewTimeOfDay(by duration: Duration) {
        state.withLock { $0.skew += duration }
    }

    public func sleep(until deadline: MonotonicInstant) async throws {
        try Task.checkCancellation()
        let id = state.withLock { state in
            state.waits.append(max(state.now.duration(to: deadline), .zero))
            state.nextID += 1
            if autoAdvances { state.now = max(state.now, deadline) }
            return state.nextID
        }
        if autoAdvances {
            asleep.increment()
            return
        }
        defer { state.withLock { _ = $0.cancelled.remove(id) } }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let outcome: Result<Void, any Error>? = state.withLock { state in
                    if state.cancelled.contains(id) { return .failure(CancellationError()) }
                    if deadline <= state.now { return .success(()) }
                    state.sleepers.append(Sleeper(id: id, deadline: deadline, continuation: continuation))
                    return nil
                }
                asleep.increment()
                if let outcome { continuation.resume(with: outcome) }
            }
        } onCancel: {
            let sleeper: Sleeper? = state.withLock { state in
                guard let index = state.sleepers.firstIndex(where: { $0.id == id }) else {
                    state.cancelled.insert(id)
                    return nil
                }
                return state.sleepers.remove(at: index)
            }
            sleeper?.continuation.resume(throwing: CancellationError())
        }
    }
}
