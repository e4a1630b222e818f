// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// A number that only grows, and that tasks can wait for: how tests wait for a thing to happen without sleeping.
public final class CountWatch: Sendable {
    private let list = WaitingList(0)

    /// A watch that stands at 0.
    public init() {}

    /// How far it has counted.
    public var count: Int { list.reached }

    /// Counts one further and wakes those who waited for it.
    public func increment() {
        list.raise { $0 + 1 }
    }

    /// Waits until the count is at least `threshold`; returns at once when it is.
    ///
    /// - Throws: `CancellationError` when the task is cancelled.
    public func wait(for threshold: Int) async throws {
        try await list.wait(for: threshold)
    }
}
