// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import HoldfastSemantics

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

extension FailedAttempt {
    /// What the retrier is told of an attempt that failed.
    init(
        _ outcome: AttemptOutcome,
        _ result: Result<Response, any Error>,
        _ request: URLRequest,
        _ course: AttemptCourse,
        _ context: CallContext
    ) {
        var exchange = FailedExchange(
            outcome,
            // A step may have changed it, and what was sent counts.
            method: context.method(of: context.exchange?.request ?? request),
            fields: context.exchange?.presentedFields ?? HeaderFields(request.allHTTPHeaderFields ?? [:]),
            attempt: course.countedAttempts,
            bodyIsReplayable: context.body.isWhole,
            declaredIdempotent: context.options.isIdempotent,
            timeLeft: context.deadline.map { context.clock.now.duration(to: $0) },
            receivedAt: context.exchange?.responseTime ?? context.clock.timestamp
        )
        if let own = course.inForce?.rules.attemptField, request.value(forHTTPHeaderField: own.rawName) == nil {
            exchange.fields[own] = nil
        }
        let beneath = course.records.last?.beneath ?? []
        exchange.wasRetriedBeneath = course.scope?.wasRetried ?? false || beneath.areExhausted
        self.exchange = exchange
        classification = (course.rules ?? .default).classify(exchange)
        switch result {
        case .success(let response): (self.response, error) = (response, nil)
        case .failure(let failure): (response, error) = (nil, failure)
        }
    }
}
