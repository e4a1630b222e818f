// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import HoldfastSemantics

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// Sends a request, and sends it again where a retrier says so: the one place where attempts are made.
struct AttemptLoop: Exchanging {
    let transport: any Transport
    let retrierFactory: any RetrierFactory
    let prepare: [PrepareStep]
    let authorization: AuthorizationRefresh?
    let attemptTimeout: Duration?

    func exchange(_ request: URLRequest, _ context: inout CallContext) async throws -> Response {
        var request = request
        var records: [AttemptRecord] = []
        var retrier: (any Retrier)?
        var authorized = AuthorizedHop(authorization, request, context)
        var resends = 0
        keepBodyForReplay(&context)
        while true {
            let number = records.count + 1
            context.attempt = number
            // What a step refuses was never sent, and trying again is not this loop's to decide.
            let prepared = try await prepared(request, &authorized, context)
            let start = context.clock.now
            let result = await attempt(prepared, &context)
            records.append(record(of: result, number: number, start: start, context))

            if case .failure(let error) = result, error.isCancellation { throw CancellationError() }
            if let unconditional = withoutConditions(request, after: result, &context) {
                records[records.count - 1].delay = .zero
                request = unconditional
                continue
            }
            if case .success(let response) = result,
                let followUp = await authorized?.followUp(response, isWhole: context.body.isWhole, context)
            {
                switch followUp {
                case .resend:
                    records[records.count - 1].delay = .zero
                    resends += 1
                    continue
                case .stop(let reason):
                    records[records.count - 1].stopReason = reason
                    return try final(result, records)
                case .fail(let error):
                    records[records.count - 1].stopReason = .unauthorized
                    return try final(.failure(error), records)
                }
            }
            let outcome = AttemptOutcome(result)
            guard outcome.isFailure else {
                // A redirect may ask for the content once more.
                if case .response(let head) = outcome, !head.status.isRedirection { context.body.releaseReplay() }
                return try final(result, records)
            }
            try checkCancellation(discarding: result)
            let failed = FailedAttempt(number: number - resends, outcome: outcome, result: result, request, context)
            let decision: RetryDecision
            if let timeLeft = failed.timeLeft, timeLeft <= .zero {
                decision = .stop(.deadline)
            } else if let retrier, !retrier.allowsMultipleRetries {
                decision = .stop(.attemptsExhausted)
            } else {
                let asked = retrier ?? (context.options.retrierFactory ?? retrierFactory).create(for: request)
                retrier = asked
                decision = overrule(await asked.retry(request, after: failed, context: context), failed)
            }
            try checkCancellation(discarding: result)

            switch decision {
            case .stop(let reason):
                records[records.count - 1].stopReason = reason
                return try final(result, records)
            case .retry(let delay):
                let delay = max(delay, .zero)
                records[records.count - 1].delay = delay
                failed.response?.body.discard()
                context.emit(.retryScheduled) { event in
                    event.attempt = number
                    event.delay = delay
                }
                if delay > .zero {
                    let end = context.clock.now.advanced(by: delay)
                    context.flight?.rests(until: end)
                    try await context.clock.sleep(until: end)
                    context.flight?.rests(until: nil)
                }
            }
        }
    }

    /// Keeps what an attempt reads of a one-shot body, where another attempt may follow.
    private func keepBodyForReplay(_ context: inout CallContext) {
        guard !context.body.isReplayable else { return }
        let own = (context.options.retrierFactory ?? retrierFactory).governor?.rules.replayLimit
        let limit = own ?? (authorization == nil ? 0 : RetryRules.default.replayLimit)
        if limit > 0 { context.body = context.body.teed(limit: limit) }
    }

    private func prepared(
        _ request: URLRequest,
        _ authorized: inout AuthorizedHop?,
        _ context: CallContext
    ) async throws -> URLRequest {
        try Task.checkCancellation()
        var prepared = request
        try await authorized?.apply(to: &prepared, context)
        for step in prepare { try await step(&prepared, context) }
        return prepared
    }

    private func checkCancellation(discarding result: Result<Response, any Error>) throws {
        guard Task.isCancelled else { return }
        if case .success(let response) = result { response.body.discard() }
        throw CancellationError()
    }

    private func attempt(_ prepared: URLRequest, _ context: inout CallContext) async -> Result<Response, any Error> {
        do {
            let limit = attemptTimeout.map { context.clock.now.advanced(by: $0) }
            context.attemptDeadline = earlier(context.deadline, limit)
            context.attemptIsCut = context.attemptDeadline.map { $0 != limit } ?? false
            if let deadline = context.deadline, context.clock.now >= deadline { throw deadlineExceeded(cause: nil) }
            context.exchange = SentExchange(
                request: prepared,
                presentedFields: context.presentedFields(of: prepared),
                requestTime: context.clock.timestamp,
                responseTime: nil
            )
            context.emit(.attemptStarted) { $0.attempt = context.attempt }
            var response = try await send(prepared, context)
            let responseTime = context.clock.timestamp
            context.exchange?.responseTime = responseTime
            response.requestTime = context.exchange?.requestTime
            response.responseTime = responseTime
            if response.url == nil { response.url = prepared.url }
            if case .unknown = response.presentation, let presented = context.exchange?.presentedFields {
                response.presentation = .fields(presented)
            }
            response.body = response.body.announcingEnd(to: context)
            let isOwnPart = context.validation?.asksPart == true && response.status == .partialContent
            if let acceptance = context.options.acceptance, acceptance.judgesAttempts, response.status.isSuccessful,
                !isOwnPart
            {
                try await acceptance.judge(&response)
            }
            return .success(response)
        } catch {
            return .failure(error)
        }
    }

    /// The caller's own request, where a response answers nothing that a cache asked in its place: a response to somebody
    /// else's question must not be used, so it is asked once more as it came (RFC 9111 §4.3.3).
    private func withoutConditions(
        _ request: URLRequest,
        after result: Result<Response, any Error>,
        _ context: inout CallContext
    ) -> URLRequest? {
        guard case .success(let response) = result, let validation = context.validation,
            !validation.isAnswered(response), context.body.isWhole
        else { return nil }
        context.validation = nil
        response.body.discard()
        var unconditional = request
        for name in validation.replaced {
            unconditional.setValue(validation.own[name], forHTTPHeaderField: name.rawName)
        }
        return unconditional
    }

    private func send(_ request: URLRequest, _ context: CallContext) async throws -> Response {
        guard let deadline = context.attemptDeadline, !transport.enforcesDeadline else {
            return try await transport.send(request, body: context.body, context: context)
        }
        let transport = transport
        return try await withDeadline(deadline, on: context.clock, discard: { $0.body.discard() }) {
            try await transport.send(request, body: context.body, context: context)
        }
    }

    private func record(
        of result: Result<Response, any Error>,
        number: Int,
        start: MonotonicInstant,
        _ context: CallContext
    ) -> AttemptRecord {
        let end = context.clock.now
        let response = try? result.get()
        var error: (any Error)?
        if case .failure(let failure) = result { error = failure }
        context.emit(.attemptEnded) { event in
            event.attempt = number
            event.status = response?.status
            event.error = error
            event.delay = start.duration(to: end)
        }
        return AttemptRecord(
            number: number,
            start: start,
            end: end,
            status: response?.status,
            errorCode: error.map { ($0 as? ServiceError)?.code ?? .other }
        )
    }

    private func final(_ result: Result<Response, any Error>, _ records: [AttemptRecord]) throws -> Response {
        switch result {
        case .success(var response):
            response.attempts = records
            if case .network = response.source { response.source = .network(attempts: records.count) }
            return response
        case .failure(var error as ServiceError):
            if error.code == .timeout, records.last?.stopReason == .deadline {
                error = deadlineExceeded(cause: error)
            }
            error.attempts = records
            throw error
        case .failure(let error):
            throw error
        }
    }

    private func deadlineExceeded(cause: ServiceError?) -> ServiceError {
        ServiceError(
            .deadlineExceeded,
            "The time for this call was over before a response came; allow more time, or find out what took it.",
            cause: cause,
            progress: cause.map { $0.progress ?? .bodySent } ?? .notSent,
            connectionReused: cause?.connectionReused ?? false
        )
    }

    /// A wait must end in an attempt, and an attempt must send what the first one sent.
    private func overrule(_ decision: RetryDecision, _ failed: FailedAttempt) -> RetryDecision {
        guard case .retry(let delay) = decision else { return decision }
        if !failed.bodyIsReplayable { return .stop(.notReplayable) }
        if let timeLeft = failed.timeLeft, delay >= timeLeft { return .stop(.deadline) }
        return decision
    }
}

private func earlier(_ first: MonotonicInstant?, _ second: MonotonicInstant?) -> MonotonicInstant? {
    guard let first, let second else { return first ?? second }
    return min(first, second)
}

extension AttemptOutcome {
    fileprivate init(_ result: Result<Response, any Error>) {
        switch result {
        case .success(let response): self = .response(response.head)
        case .failure(let error): self = .failure(ServiceError.attemptFailure(of: error))
        }
    }
}

extension FailedAttempt {
    fileprivate init(
        number: Int,
        outcome: AttemptOutcome,
        result: Result<Response, any Error>,
        _ request: URLRequest,
        _ context: CallContext
    ) {
        exchange = FailedExchange(
            outcome,
            method: RequestMethod(request),
            fields: context.exchange?.presentedFields ?? HeaderFields(request.allHTTPHeaderFields ?? [:]),
            attempt: number,
            bodyIsReplayable: context.body.isWhole,
            declaredIdempotent: context.options.isIdempotent,
            timeLeft: context.deadline.map { context.clock.now.duration(to: $0) },
            receivedAt: context.exchange?.responseTime ?? context.clock.timestamp
        )
        switch result {
        case .success(let response): (self.response, error) = (response, nil)
        case .failure(let failure): (response, error) = (nil, failure)
        }
    }
}
