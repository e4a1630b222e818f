// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The strategy `.exponentialBinary`: waits of 1, 2, 4, … units without jitter, until the next one would reach a limit.
///
/// The limit ends the series and is not a cap: with the defaults there are ten retries, after 1 s to 512 s, 1023 s in total. It
/// retries only if there is no network, a connection is lost or cannot be made, after a timeout, an unknown failure or a 429. It
/// does not read Retry-After. ``RetryRules`` is the better choice for new code.
package struct BinaryBackoff: Sendable, Hashable {
    /// A retry is made only if its wait is less than this; 600 s by default.
    package var maxBackoff: Duration

    /// The first wait; 1 s by default.
    package var unit: Duration

    /// Creates the strategy; each property documents its default.
    package init(maxBackoff: Duration = .seconds(600), unit: Duration = .seconds(1)) {
        self.maxBackoff = maxBackoff
        self.unit = unit
    }

    /// The wait before a retry: unit × 2^n, or nil if it reaches the limit, which ends the series.
    ///
    /// - Parameter retry: the retry's number n from 0; negative counts as 0.
    package func delay(retry: Int) -> Duration? {
        // Waits of more than 2^39 units are useless, and this keeps the product far from overflow.
        let wait = unit.doubleSeconds * Double(UInt64(1) << UInt64(min(max(0, retry), 39)))
        guard retry <= 39, wait < maxBackoff.doubleSeconds else { return nil }
        return Duration(boundedSeconds: wait)
    }

    /// The default condition of the strategy.
    ///
    /// - Parameter outcome: how the attempt ended.
    package static func retries(_ outcome: AttemptOutcome) -> Bool {
        switch outcome {
        case .response(let head):
            head.status == .tooManyRequests
        case .failure(let failure):
            switch failure.kind {
            case .offline, .connect, .connectionLost, .timeout, .other: true
            default: false
            }
        }
    }

    /// Decides what follows a failed attempt.
    ///
    /// A request that may have taken effect is not sent twice: if it is not idempotent, an ambiguous failure ends the call here as
    /// everywhere.
    ///
    /// - Parameters:
    ///   - outcome: how the attempt ended.
    ///   - method: the request's method.
    ///   - attempt: the number of the attempt that ended; the first is 1.
    ///   - bodyIsReplayable: whether the content can be sent from its start again; true for no content.
    ///   - declaredIdempotent: the caller's word on idempotency; nil leaves it to the method.
    ///   - timeLeft: what remains of the call's time; nil for no limit.
    package func decide(
        outcome: AttemptOutcome,
        method: RequestMethod,
        attempt: Int,
        bodyIsReplayable: Bool,
        declaredIdempotent: Bool? = nil,
        timeLeft: Duration? = nil
    ) -> RetryDecision {
        guard BinaryBackoff.retries(outcome) else { return .stop(.notRetryable) }
        // A 429 says that the server did not act, so the method does not matter.
        var isSafeToRepeat = declaredIdempotent
        if case .response = outcome { isSafeToRepeat = true }
        let retryClass = Retryability.classify(
            method: method,
            outcome: outcome,
            bodyIsReplayable: bodyIsReplayable,
            declaredIdempotent: isSafeToRepeat
        )
        if case .never(let reason) = retryClass { return .stop(reason) }
        guard let wait = delay(retry: attempt - 1) else { return .stop(.attemptsExhausted) }
        if let timeLeft, wait >= timeLeft { return .stop(.deadline) }
        return .retry(after: wait)
    }
}
