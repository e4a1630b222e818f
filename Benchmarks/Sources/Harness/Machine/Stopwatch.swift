// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The time since its creation, from a clock that cannot be set.
public struct Stopwatch: Sendable {
    private let start = ContinuousClock.now

    /// Starts the stopwatch.
    public init() {}

    /// Nanoseconds since the start.
    public var nanoseconds: UInt64 {
        let (seconds, attoseconds) = (ContinuousClock.now - start).components
        return UInt64(max(0, seconds)) * 1_000_000_000 + UInt64(max(0, attoseconds)) / 1_000_000_000
    }

    /// Seconds since the start.
    public var seconds: Double { Double(nanoseconds) / 1e9 }
}
