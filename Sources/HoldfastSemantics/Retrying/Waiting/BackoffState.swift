// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// What a backoff remembers of the waits before: nothing for most kinds of jitter.
public struct BackoffState: Sendable, Hashable {
    /// The last wait in seconds, for decorrelated jitter.
    package var lastWait: Double?
    /// The curve's last point, for Polly's second formula.
    package var lastPoint: Double = 0

    /// The state before the first wait.
    public init() {}
}
