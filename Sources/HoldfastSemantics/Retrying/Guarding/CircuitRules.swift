// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// When attempts to a partition are held back because most of them fail.
public struct CircuitRules: Sendable, Hashable {
    /// The share of failures that opens the circuit; 0.5 by default, above 0 and at most 1.
    public var failureRatio = 0.5

    /// The length of the sliding window over which failures are counted; 10 s by default.
    public var window: Duration = .seconds(10)

    /// How many attempts must have ended within the window before the circuit can open; 20 by default.
    public var minimumAttempts = 20

    /// How long the circuit stays open before probes are let through; 5 s by default.
    public var openTime: Duration = .seconds(5)

    /// How many probes in a row must succeed to close it, and how many may be in flight; 1 by default.
    public var probes = 1

    /// The defaults.
    public init() {}
}

extension CircuitRules {
    /// Whether an attempt's end counts as a failure of the server; nil where it says nothing about it.
    ///
    /// Failures are errors, 500, 502, 503, 504 and server errors whose code is not known (RFC 9110 §15): what budgets count,
    /// but for 408 and 429, which show a server that minds itself. Cancellation and what failed on this side, such as a
    /// request that cannot be sent or a certificate that is not trusted, count neither way.
    public static func isFailure(_ outcome: AttemptOutcome) -> Bool? {
        if case .response(let head) = outcome, head.status == .requestTimeout || head.status == .tooManyRequests {
            return false
        }
        return switch outcome.sign {
        case .success: false
        case .trouble: true
        case .nothing: nil
        }
    }
}
