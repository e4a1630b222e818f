// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

extension RetryRules {
    /// Decides when a redirect is followed; a pure function of its inputs.
    ///
    /// A redirect with Retry-After asks for a wait before its target is asked (RFC 9110 §10.2.3). As after a failure the wait
    /// is never undercut, up to half of it (5 s at most) is added at random, and one that does not fit the rules or the time
    /// left is not begun.
    ///
    /// - Parameters:
    ///   - redirect: the head of the 3xx response.
    ///   - receivedAt: when it came.
    ///   - timeLeft: what remains of the call's time; nil for no limit.
    ///   - generator: a source of randomness; seeded in tests.
    /// - Returns: `.retry` with the wait before the next hop, zero where none is asked for; `.stop` where the redirect is to be
    ///   handed up instead.
    public func decideFollowing(
        _ redirect: ResponseHead,
        receivedAt: Timestamp,
        timeLeft: Duration?,
        using generator: inout some RandomNumberGenerator
    ) -> RetryDecision {
        guard obeysRetryAfter, let asked = RetryAfter.delay(redirect.fields, receivedAt: receivedAt), asked > .zero
        else { return .retryNow }
        guard asked <= maxServerDelay else { return .stop(.serverDelayTooLong) }
        let wait = spreadOut(asked, asked: asked, timeLeft, using: &generator)
        guard fits(wait, timeLeft) else { return .stop(.deadline) }
        return .retry(after: wait)
    }
}
