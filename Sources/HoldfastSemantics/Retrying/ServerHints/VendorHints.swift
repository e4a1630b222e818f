// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Fields beside Retry-After by which vendors say how long to wait; each is read only where it is switched on.
public struct VendorHints: OptionSet, Sendable, Hashable {
    public let rawValue: Int

    /// Hints from their raw bits.
    public init(rawValue: Int) {
        self.rawValue = rawValue
    }

    /// `retry-after-ms` and `x-amz-retry-after`: milliseconds.
    public static let milliseconds = VendorHints(rawValue: 1)
    /// `grpc-retry-pushback-ms`: milliseconds; a negative or unreadable value forbids the retry.
    public static let pushback = VendorHints(rawValue: 2)
    /// `X-RateLimit-Reset`: a time or a number of seconds, told apart by its size; ambiguous, so mind the server.
    public static let rateLimitReset = VendorHints(rawValue: 4)
    /// `x-should-retry`: `false` forbids the retry; `true` promises nothing.
    public static let shouldRetry = VendorHints(rawValue: 8)

    /// All of them.
    public static let all: VendorHints = [.milliseconds, .pushback, .rateLimitReset, .shouldRetry]
}
