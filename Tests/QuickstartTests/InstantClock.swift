// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Holdfast
import HoldfastSemantics
import Synchronization

/// A clock on which waiting takes no time: a sleeper moves it to the end of its sleep and goes on.
final class InstantClock: HoldfastClock {
    /// The time of day when ``now`` is at its origin: 2026-01-01T00:00:00Z.
    static let midnight = Timestamp(secondsSinceEpoch: 1_767_225_600)

    private let elapsed = Mutex(Duration.zero)

    var now: MonotonicInstant { MonotonicInstant(sinceOrigin: elapsed.withLock { $0 }) }

    var timestamp: Timestamp { InstantClock.midnight.advanced(by: now.sinceOrigin) }

    func sleep(until deadline: MonotonicInstant) async throws {
        try Task.checkCancellation()
        elapsed.withLock { $0 = max($0, deadline.sinceOrigin) }
        await Task.yield()
    }
}
