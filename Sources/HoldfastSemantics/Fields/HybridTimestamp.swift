// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// An instant of a hybrid logical clock: it orders the requests of a cache even where wall clocks stand still or are set back.
///
/// Each instant is later than every instant that was issued or observed before it, and otherwise as close to the wall clock as
/// that allows (Kulkarni et al., *Logical Physical Clocks*, OPODIS 2014). It is kept with a stored response, so that it orders what
/// several processes, or one process before and after a restart, have asked for. It says nothing of ages: those are counted
/// from a ``Timestamp``.
public struct HybridTimestamp: Sendable, Hashable, Comparable {
    /// Milliseconds since 1970 in the upper 48 bits, a counter in the lower 16; below 2⁶².
    public let rawValue: UInt64

    /// The first instant of a millisecond; before 1970 and after the year 4199 it is the first or the last there is.
    public init(_ timestamp: Timestamp) {
        let milliseconds = UInt64(clamping: timestamp.millisecondsSinceEpoch)
        rawValue = min(milliseconds, HybridTimestamp.latest >> 16) << 16
    }

    /// An instant that was written down; nil for what none can be.
    public init?(rawValue: UInt64) {
        guard rawValue <= HybridTimestamp.latest else { return nil }
        self.rawValue = rawValue
    }

    private init(clamping rawValue: UInt64) {
        self.rawValue = min(rawValue, HybridTimestamp.latest)
    }

    /// The instant of something that happens after this one, at `now` by the wall clock.
    public func next(at now: Timestamp) -> HybridTimestamp {
        max(HybridTimestamp(clamping: rawValue + 1), HybridTimestamp(now))
    }

    /// Whether the left instant comes before the right one.
    public static func < (left: HybridTimestamp, right: HybridTimestamp) -> Bool {
        left.rawValue < right.rawValue
    }

    private static var latest: UInt64 { 1 << 62 - 1 }
}
