// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastSemantics
private import Synchronization

/// The hybrid logical clock by which this process orders its requests.
///
/// One for the process, since a request may pass several caches.
enum RequestOrder {
    private static let last = Atomic<UInt64>(0)

    /// The latest instant that was issued or observed.
    static var latest: HybridTimestamp { instant(last.load(ordering: .acquiring)) }

    /// The instant of a request that is sent at `now`: later than all that were issued or observed.
    static func next(at now: Timestamp) -> HybridTimestamp {
        var known = last.load(ordering: .relaxed)
        while true {
            let next = instant(known).next(at: now)
            let (exchanged, found) = last.weakCompareExchange(
                expected: known,
                desired: next.rawValue,
                ordering: .acquiringAndReleasing
            )
            if exchanged { return next }
            known = found
        }
    }

    /// Makes all that is issued from now on later than an instant that was found in a store: another process, or this one before
    /// its clock was set back, may have written it.
    static func observe(_ instant: HybridTimestamp) {
        last.max(instant.rawValue, ordering: .acquiringAndReleasing)
    }

    private static func instant(_ rawValue: UInt64) -> HybridTimestamp {
        // Only values of instants are ever stored.
        HybridTimestamp(rawValue: rawValue) ?? HybridTimestamp(.distantFuture)
    }
}
