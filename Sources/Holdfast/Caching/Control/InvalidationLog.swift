// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastSemantics
private import Synchronization

/// Counts invalidations, so that a response whose request went out before one is not stored after it.
///
/// Once the head is there the store itself keeps watch (see ``CacheStore``); this covers the time before. Targets share a
/// fixed number of counters: two that fall together cost a response that could have been stored, and never the opposite.
final class InvalidationLog: Sendable {
    /// The counts at one moment.
    struct Mark: Sendable, Hashable {
        fileprivate let ofTarget: UInt64
        fileprivate let ofAll: UInt64
    }

    private struct Counts {
        var ofTargets = [UInt64](repeating: 0, count: 1_024)
        var ofAll: UInt64 = 0
    }

    private let counts = Mutex(Counts())

    /// The counts for a target now.
    func mark(of target: TargetURI) -> Mark {
        let place = InvalidationLog.place(of: target)
        return counts.withLock { Mark(ofTarget: $0.ofTargets[place], ofAll: $0.ofAll) }
    }

    /// A mark of `target` as it must be found if nothing but `own` was invalidated since: what a request makes invalid was
    /// stored before its response.
    func mark(_ mark: Mark, of target: TargetURI, after own: [TargetURI]) -> Mark {
        let place = InvalidationLog.place(of: target)
        let count = own.count { InvalidationLog.place(of: $0) == place }
        return Mark(ofTarget: mark.ofTarget &+ UInt64(count), ofAll: mark.ofAll)
    }

    /// A target is being invalidated.
    func note(_ target: TargetURI) {
        let place = InvalidationLog.place(of: target)
        counts.withLock { $0.ofTargets[place] &+= 1 }
    }

    /// More than one target is being invalidated.
    func noteAll() {
        counts.withLock { $0.ofAll &+= 1 }
    }

    private static func place(of target: TargetURI) -> Int {
        Int(UInt(bitPattern: target.canonical.hashValue) % 1_024)
    }
}
