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
    /// Failures are errors and 500, 502, 503 and 504; a 429 shows a server that minds itself. Cancellation and what failed on
    /// this side, such as a request that cannot be sent, count neither way.
    public static func isFailure(_ outcome: AttemptOutcome) -> Bool? {
        switch outcome {
        case .response(let head):
            [.internalServerError, .badGateway, .serviceUnavailable, .gatewayTimeout].contains(head.status)
        case .failure(let failure):
            [.cancelled, .badRequest, .tooLarge, .offline, .throttled, .heldBack].contains(failure.kind) ? nil : true
        }
    }
}
