// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastSemantics

#if canImport(FoundationNetworking)
    internal import Foundation
    internal import FoundationNetworking
#else
    internal import Foundation
#endif

/// Says what the end of one copy means for the others.
struct HedgeJudge: Sendable {
    let request: URLRequest
    let context: CallContext
    let rules: RetryRules

    /// What follows the end of a copy.
    enum Verdict {
        /// It is the answer.
        case wins
        /// Another copy may do better; how long the server asks to be left alone, if it does.
        case fails(pushback: Duration?)
    }

    func verdict(on result: Result<Response, any Error>) -> Verdict {
        let outcome = AttemptOutcome(result, in: context)
        guard outcome.isFailure else { return .wins }
        let failed = HedgeJudge.exchange(request, outcome, bodyIsReplayable: true, context)
        // To a second copy this says that the first is at work (draft-ietf-httpapi-idempotency-key-header §2.6).
        if case .response(let head) = outcome, head.status == .conflict, failed.fields.bearsIdempotencyKey {
            return .fails(pushback: .seconds(-1))
        }
        if case .never = rules.classify(failed) { return .wins }
        let hint = rules.serverHint(failed)
        return .fails(pushback: hint.forbidsRetry ? .seconds(-1) : hint.wait)
    }

    /// Whether the server answered as it should; nil where the attempt's end says nothing about it.
    func succeeded(_ result: Result<Response, any Error>) -> Bool? {
        switch AttemptOutcome(result, in: context).sign {
        case .success: true
        case .trouble: false
        case .nothing: nil
        }
    }

    /// Whether the request may be sent a second time while the first copy's fate is open.
    static func permitsCopy(
        of request: URLRequest,
        _ body: RequestBody,
        by rules: RetryRules,
        _ context: CallContext
    ) -> Bool {
        let unknown = AttemptOutcome.failure(AttemptFailure(kind: .timeout, progress: .bodySent))
        return rules.permitsCopy(
            of: exchange(request, unknown, bodyIsReplayable: body.isReplayable, context)
        )
    }

    private static func exchange(
        _ request: URLRequest,
        _ outcome: AttemptOutcome,
        bodyIsReplayable: Bool,
        _ context: CallContext
    ) -> FailedExchange {
        FailedExchange(
            outcome,
            method: context.method(of: request),
            fields: context.exchange?.presentedFields ?? HeaderFields(request.allHTTPHeaderFields ?? [:]),
            attempt: context.attempt,
            bodyIsReplayable: bodyIsReplayable,
            declaredIdempotent: context.options.isIdempotent,
            receivedAt: context.clock.timestamp
        )
    }
}
