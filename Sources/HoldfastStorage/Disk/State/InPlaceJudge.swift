// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// Decides whether a short write may be made on the caller's thread.
///
/// Such a write is a copy into the page cache and takes microseconds, less than waking a thread. When the system begins to
/// slow writers down, the next ones go to the store's own thread until it has caught up.
final class InPlaceJudge: Sendable {
    /// Longer records always go to the store's thread.
    static let longest = 65_536
    private static let patience = Duration.milliseconds(20)
    private static let detour = 64

    private let detoursLeft = Atomic<Int>(0)
    private let turn = Atomic<UInt8>(0)

    /// Whether this write is one of those that are timed: one in sixteen, since the clock costs as much as a small copy.
    var times: Bool { turn.wrappingAdd(1, ordering: .relaxed).newValue & 15 == 0 }

    /// Whether a record of this length may be written here and now.
    func admits(_ length: Int) -> Bool {
        if length > Self.longest { return false }
        if detoursLeft.load(ordering: .relaxed) == 0 { return true }
        detoursLeft.subtract(1, ordering: .relaxed)
        return detoursLeft.load(ordering: .relaxed) < 0
    }

    /// Notes how long a write on a caller's thread took.
    func took(_ duration: Duration) {
        if duration > Self.patience { detoursLeft.store(Self.detour, ordering: .relaxed) }
    }
}
