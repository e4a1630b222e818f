// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// What the rules make of a failed attempt: the decision, and what it rests on.
public struct RetryJudgement: Sendable, Hashable {
    /// What is done.
    public var decision: RetryDecision
    /// What the attempt proved.
    public var retryClass: RetryClass
    /// What the retry costs the budget by; nil where it is free, and where there is none.
    public var cause: RetryCause?
    /// The wait that the server asked for, also where the call ends because of it: whoever gives up now knows when to try
    /// again. Counted from the receipt of the answer; nil where it asked for none.
    public var serverDelay: Duration?

    /// A judgement from its parts.
    public init(
        _ decision: RetryDecision,
        _ retryClass: RetryClass,
        cause: RetryCause? = nil,
        serverDelay: Duration? = nil
    ) {
        self.decision = decision
        self.retryClass = retryClass
        self.cause = cause
        self.serverDelay = serverDelay
    }
}

extension RetryRules {
    /// What a retry costs the budget by, where it is no free resend.
    ///
    /// A server's leave to come back at once, by a Retry-After of 0, changes nothing about the cost.
    ///
    /// - Parameters:
    ///   - retryClass: what the attempt proved.
    ///   - outcome: how it ended.
    /// - Returns: nil where nothing is sent again.
    public func cause(of retryClass: RetryClass, outcome: AttemptOutcome) -> RetryCause? {
        switch (retryClass, outcome) {
        case (.never, _): nil
        case (.throttled, _): .throttling
        case (_, .failure(let failure)) where failure.kind == .timeout: .timeout
        default: .transient
        }
    }
}
