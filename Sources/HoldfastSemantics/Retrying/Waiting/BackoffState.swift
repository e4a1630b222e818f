// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// What a backoff remembers of the waits before: nothing for most kinds of jitter.
///
/// One value for all waits of one call; a new call begins with a new one.
public struct BackoffState: Sendable, Hashable {
    /// The last wait in seconds before any rounding, for decorrelated jitter.
    package var lastWait: Double?
    /// The retry that drew the curve's last point, and its sample, for Polly's second formula.
    package var lastRetry: Int?
    package var lastSample = 0.0

    /// The state before the first wait.
    public init() {}
}
