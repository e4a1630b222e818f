// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// What the rules remember of one call between its failures.
public struct RetryHistory: Sendable, Hashable {
    /// The state of the backoff that follows transient failures, and of the one that follows throttling.
    public var backoff = BackoffState()
    public var throttlingBackoff = BackoffState()

    /// The classes that earn one free resend, and have had it.
    public var freeResends: Set<FreeResend> = []

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
}
