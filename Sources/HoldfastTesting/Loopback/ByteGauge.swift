// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// A number of bytes that only grows, and that tasks can wait for: how far a transfer has come.
public final class ByteGauge: Sendable {
    private let list = WaitingList(0)

    /// A gauge that stands at 0.
    public init() {}

    /// How many bytes there were so far.
    public var count: Int { list.reached }

    /// Counts further bytes and wakes those who waited for them.
    public func add(_ bytes: Int) {
        list.raise { $0 + bytes }
    }

    /// Waits until there were `bytes` or more; returns at once when there were.
    ///
    /// - Throws: `CancellationError` when the task is cancelled.
    public func wait(for bytes: Int) async throws {
        try await list.wait(for: bytes)
    }
}
