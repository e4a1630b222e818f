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

    /// The count of a path, whatever the query, at one moment.
    struct PathMark: Sendable, Hashable {
        fileprivate let count: UInt64
    }

    private struct Counts {
        var ofTargets = [UInt64](repeating: 0, count: 1_024)
        var ofPaths = [UInt64](repeating: 0, count: 1_024)
        var ofAll: UInt64 = 0
    }

    private let counts = Mutex(Counts())

    /// The counts for a target now.
    func mark(of target: TargetURI) -> Mark {
        let place = InvalidationLog.place(of: target)
        return counts.withLock { Mark(ofTarget: $0.ofTargets[place], ofAll: $0.ofAll) }
    }

    /// The count for the path of a target now.
    func pathMark(of target: TargetURI) -> PathMark {
        let place = InvalidationLog.pathPlace(of: target)
        return counts.withLock { PathMark(count: $0.ofPaths[place]) }
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
        let (place, pathPlace) = (InvalidationLog.place(of: target), InvalidationLog.pathPlace(of: target))
        counts.withLock { counts in
            counts.ofTargets[place] &+= 1
            counts.ofPaths[pathPlace] &+= 1
        }
    }

    /// More than one target is being invalidated.
    func noteAll() {
        counts.withLock { $0.ofAll &+= 1 }
    }

    private static func place(of target: TargetURI) -> Int {
        Int(UInt(bitPattern: target.canonical.hashValue) % 1_024)
    }

    private static func pathPlace(of target: TargetURI) -> Int {
        var hasher = Hasher()
        var text = target.canonical
        text.withUTF8 { bytes in
            let end = bytes.firstIndex(of: UInt8(ascii: "?")) ?? bytes.count
            hasher.combine(bytes: UnsafeRawBufferPointer(UnsafeBufferPointer(rebasing: bytes[..<end])))
        }
        return Int(UInt(bitPattern: hasher.finalize()) % 1_024)
    }
}
