// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

private import Foundation
public import HoldfastSemantics

/// The only source of time in a pipeline: waits, deadlines and the `now` of every decision come from it.
///
/// **Choose.** ``SystemClock`` in programs, `ManualClock` of HoldfastTesting in tests. **Implement.** ``now`` never goes
/// backwards; ``timestamp`` may (people set clocks); ``sleep(until:)`` is never early and throws `CancellationError`
/// promptly when its task is cancelled.
public protocol HoldfastClock: Sendable {
    /// The monotonic time.
    var now: MonotonicInstant { get }

    /// The time of day, UTC.
    var timestamp: Timestamp { get }

    /// Waits until `deadline`; returns at once if it has passed.
    ///
    /// - Throws: `CancellationError` if the task is cancelled.
    func sleep(until deadline: MonotonicInstant) async throws
}

/// A point on a clock's monotonic time line; instants of different clocks do not compare.
public struct MonotonicInstant: InstantProtocol, Sendable {
    /// The time since the clock's origin.
    public var sinceOrigin: Duration

    /// The instant `sinceOrigin` after the clock's origin.
    public init(sinceOrigin: Duration) { self.sinceOrigin = sinceOrigin }

    public func advanced(by duration: Duration) -> MonotonicInstant {
        MonotonicInstant(sinceOrigin: sinceOrigin + duration)
    }

    public func duration(to other: MonotonicInstant) -> Duration {
        other.sinceOrigin - sinceOrigin
    }

    public static func < (left: MonotonicInstant, right: MonotonicInstant) -> Bool {
        left.sinceOrigin < right.sinceOrigin
    }
}

/// The machine's clocks: `ContinuousClock` for waits and deadlines, the wall clock for timestamps.
public struct SystemClock: HoldfastClock {
    private static let origin = ContinuousClock.now

    /// A clock; all of them share one origin.
    public init() {}

    public var now: MonotonicInstant {
        MonotonicInstant(sinceOrigin: SystemClock.origin.duration(to: .now))
    }

    public var timestamp: Timestamp {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Timestamp(millisecondsSinceEpoch: Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000)
    }

    public func sleep(until deadline: MonotonicInstant) async throws {
        // The runtime traps on instants that do not fit its counter of seconds; nobody waits that long.
        let sinceOrigin = min(deadline.sinceOrigin, .seconds(1 << 40))
        try await ContinuousClock().sleep(until: SystemClock.origin.advanced(by: sinceOrigin))
    }
}
