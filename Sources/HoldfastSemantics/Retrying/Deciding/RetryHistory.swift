// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// What the rules remember of one call between its failures.
///
/// One value for all failures of a call: with a new one for each, every failure would be the first.
public struct RetryHistory: Sendable, Hashable {
    /// The state of the backoff that follows transient failures.
    public var backoff = BackoffState()

    /// The state of the backoff that follows throttling.
    public var throttlingBackoff = BackoffState()

    /// How many retries followed transient failures, free resends not counted: the place in that backoff's series.
    public package(set) var transientRetries = 0

    /// How many retries followed throttling: the place in that backoff's series.
    public package(set) var throttlingRetries = 0

    /// The classes that earn one free resend, and have had it.
    public var freeResends: Set<FreeResend> = []

    /// How many attempts ``RetryRules/maxAttempts`` counts so far: the first one, and the retries of both series.
    ///
    /// Free resends are not among them, nor is what a loop sends again on its own account, such as after a refresh of
    /// credentials.
    public var countedAttempts: Int { 1 + transientRetries + throttlingRetries }

    /// A call's history before its first failure.
    public init() {}
}

/// The failures that are cured by sending once more at once, or not at all.
public struct FreeResend: Sendable, Hashable {
    private let name: String

    /// A reused connection was closed before any byte of an answer.
    public static let staleSocket = FreeResend(name: "stale-socket")
    /// The server did not process the request: REFUSED_STREAM, GOAWAY, H3_REQUEST_REJECTED.
    public static let refused = FreeResend(name: "refused")
    /// 421: the connection was the wrong one.
    public static let misdirected = FreeResend(name: "misdirected")
    /// 425: the request came as early data.
    public static let tooEarly = FreeResend(name: "too-early")
    /// 417: the server does not know the expectation.
    public static let expectation = FreeResend(name: "expectation")

    /// How many kinds there are, and so how many of them one call can have at most.
    package static let kinds = 5
}
