// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import HoldfastSemantics

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// Sends a request, and sends it again where a retrier says so: the one place where attempts are made.
///
/// The retrier judges. The loop overrules it where sending again is impossible, or might act twice (`RetryRules.veto`), and
/// the governor of its factory where it would do harm: the budget of the origin is spent, its gate is closed.
struct AttemptLoop: Exchanging {
    let transport: any Transport
    let governance: Governance
    let prepare: [PrepareStep]
    let authorization: AuthorizationRefresh?
    let attemptTimeout: Duration?
    /// Whether the transport talks to the network itself, so that no other layer can retry beneath.
    let isInnermost: Bool
    /// Whether an attempt of a call without options of its own is nothing but a send.
    private let isUngoverned: Bool

    init(
        transport: any Transport,
        governance: Governance,
        prepare: [PrepareStep],
        authorization: AuthorizationRefresh?,
        attemptTimeout: Duration?
    ) {
        self.transport = AttemptLoop.guarded(transport, governance.own)
        self.governance = governance
        self.prepare = prepare
        self.authorization = authorization
        self.attemptTimeout = attemptTimeout
        isInnermost = transport is URLSessionTransport
        isUngoverned =
            governance.own == nil && prepare.isEmpty && authorization == nil && self.transport.enforcesDeadline
    }

    /// Whether the first attempt needs no permission, no preparation and no judgement but that of its status.
    private func isStraight(_ options: CallOptions) -> Bool { isUngoverned && !options.concernAttempts }

    /// The transport behind the parts that the rules ask for: each copy of a hedge passes the circuit by itself.
    private static func guarded(_ transport: any Transport, _ governor: RetryGovernor?) -> any Transport {
        guard let governor else { return transport }
        var guarded = transport
        if governor.rules.allowsResumes { guarded = ResumingTransport(guarded, governor: governor) }
        if let circuit = governor.rules.circuit { guarded = CircuitBreaker(guarded, rules: circuit) }
        if let hedging = governor.rules.hedging {
            guarded = HedgedTransport(guarded, rules: hedging, governor: governor)
        }
        return guarded
    }

    func exchange(_ request: URLRequest, _ context: inout CallContext) async throws -> Response {
        guard isStraight(context.options), !context.isObserved, context.body.isReplayable, context.validation == nil,
            context.deadline == nil
        else { return try await exchange(request, after: nil, &context) }
        let first = await straightAttempt(request, &context)
        if case .success(let response) = first.result, response.status.rawValue < 400 {
            return response
        }
        return try await exchange(request, after: first, &context)
    }

    /// - Parameter first: the first attempt, where it was made already.
    private func exchange(
        _ request: URLRequest,
        after first: MadeAttempt?,
        _ context: inout CallContext
    ) async throws -> Response {
        var first = first
        var request = request
        var course = course(of: request, context)
        // Whatever ends the exchange, cancellation in a wait included, what was granted and not used goes back.
        defer { if course.grant != nil { course.giveBack(now: context.clock.now) } }
        var authorized = AuthorizedHop(authorization, request, context)
        keepBodyForReplay(course, &context)
        context.wantsNewConnection = false
        var last: Result<Response, any Error>?
        while true {
            context.attempt = course.records.count + 1
            var result: Result<Response, any Error>
            if let made = first {
                (first, result) = (nil, made.result)
                course.records.append(made.record)
            } else {
                let prepared: PreparedRequest
                do {
                    try await waitForTurn(&course, context)
                    // Whatever the wait was for, what is stored may have changed by its end.
                    if context.validation != nil { request = await context.renewingConditions(of: request) }
                    // What a step refuses was never sent, and trying again is not this loop's to decide.
                    prepared = try await self.prepared(request, course, &authorized, &context)
                } catch {
                    return try unsent(error, after: last, &course, context)
                }
                last = nil
                let start = context.clock.now
                result = await attempt(prepared, course, &context)
                course.records.append(record(of: result, start: start, context))
            }
            if case .failure(let error) = result, error.isCancellation { throw CancellationError() }
            course.attemptEnded(result, context)
            if let unconditional = withoutConditions(request, after: result, &context) {
                resend("unconditional", &course, context)
                request = unconditional
                continue
            }
            if case .success(var response) = result,
                let followUp = await authorized?.followUp(&response, isWhole: context.body.isWhole, context)
            {
                result = .success(response)
                switch followUp {
                case .resend:
                    let refused = FailedAttempt(AttemptOutcome(result), result, request, course, context)
                    // Statuses of the application's own may leave open whether the server acted.
                    if response.status.isServerError, let reason = course.veto(refused.exchange) {
                        stop(reason, &course, context)
                        return try final(result, course, context)
                    }
                    resend("credential", &course, context)
                    continue
                case .stop(let reason):
                    stop(reason, &course, context)
                    return try final(result, course, context)
                case .fail(let error):
                    stop(.unauthorized, &course, context)
                    return try final(.failure(error), course, context)
                }
            }
            let outcome = AttemptOutcome(result)
            if Invalidation.isAmbiguous(outcome) { context.mayBeApplied = true }
            guard outcome.isFailure else {
                // A redirect may ask for the content once more.
                if case .response(let head) = outcome, !head.status.isRedirection { context.body.releaseReplay() }
                return try final(result, course, context)
            }
            try checkCancellation(discarding: result)
            let failed = FailedAttempt(outcome, result, request, course, context)
            course.explain(failed)
            if try await waitedForNetwork(after: failed, &course, context) { continue }

            switch try await next(after: failed, request, &course, context) {
            case .stop(let reason):
                stop(reason, &course, context)
                try checkCancellation(discarding: result)
                return try final(result, course, context)
            case .retry(let delay):
                course.goesOn(after: delay)
                // Until the next attempt begins it is the one that the call would end with.
                if case .success(var response) = result {
                    context.detach(&response)
                    result = .success(response)
                }
                last = result
                context.wantsNewConnection = failed.exchange.blamesConnection
                context.emit(.retryScheduled) { event in
                    event.describe(course.records.last, failed.error)
                    event.delay = delay
                }
                if delay > .zero {
                    do {
                        try await rest(until: context.clock.now.advanced(by: delay), context)
                    } catch {
                        return try unsent(error, after: last, &course, context)
                    }
                }
                if failed.exchange.isRefusedExpectation { request.setValue(nil, forHTTPHeaderField: "Expect") }
            }
        }
    }

    private func course(of request: URLRequest, _ context: CallContext) -> AttemptCourse {
        let inForce = governance.rules(for: context.options)
        let listens = !isInnermost && inForce?.rules.respectsInnerRetries ?? false
        return AttemptCourse(
            of: request,
            inForce: inForce,
            governor: governance.governor(for: context.options),
            scope: listens ? RetryScope() : nil,
            context
        )
    }

    /// Keeps what an attempt reads of a one-shot body, where another attempt may follow.
    private func keepBodyForReplay(_ course: AttemptCourse, _ context: inout CallContext) {
        guard !context.body.isReplayable else { return }
        let inForce = course.inForce
        guard authorization != nil || inForce?.rules.maxAttempts ?? 1 > 1 else { return }
        let limit = inForce?.rules.replayLimit ?? RetryRules.default.replayLimit
        if limit > 0 { context.body = context.body.teed(limit: limit) }
    }

    /// What follows a failure: the retrier's word, unless it cannot or must not be done.
    private func next(
        after failed: FailedAttempt,
        _ request: URLRequest,
        _ course: inout AttemptCourse,
        _ context: CallContext
    ) async throws -> RetryDecision {
        if let timeLeft = failed.timeLeft, timeLeft <= .zero { return .stop(.deadline) }
        if let retrier = course.retrier, !retrier.allowsMultipleRetries { return .stop(.attemptsExhausted) }
        let asked = course.retrier ?? governance.makeRetrier(for: request, context.options)
        course.retrier = asked
        let decision = await asked.retry(request, after: failed, context: context)
        try checkCancellation(discarding: failed.response)
        guard case .retry(let delay) = decision else { return decision }
        if let reason = course.veto(failed.exchange) { return .stop(reason) }
        if let reason = refusal(of: failed, after: max(delay, .zero), &course, context) {
            return .stop(reason)
        }
        return .retry(after: max(delay, .zero))
    }

    private func checkCancellation(discarding result: Result<Response, any Error>) throws {
        try checkCancellation(discarding: try? result.get())
    }

    private func checkCancellation(discarding response: Response?) throws {
        guard Task.isCancelled else { return }
        response?.body.discard()
        throw CancellationError()
    }

    /// What the call ends with when another attempt was to be made and could not be begun.
    ///
    /// A closed gate leaves the outcome that there was; the error of a step, or of the authorization, takes its place.
    private func unsent(
        _ error: any Error,
        after last: Result<Response, any Error>?,
        _ course: inout AttemptCourse,
        _ context: CallContext
    ) throws -> Response {
        if error.isCancellation {
            if case .success(let response) = last { response.body.discard() }
            throw CancellationError()
        }
        if let refused = error as? RefusedRetry, let last {
            stop(refused.reason, &course, context)
            return try final(last, course, context)
        }
        let refusal = (error as? ServiceError).flatMap { $0.code == .throttled ? $0 : nil }
        if course.records.isEmpty {
            if refusal != nil {
                course.account?.stopped(.gateClosed)
                context.emit(.retriesStopped) { event in
                    event.stopReason = .gateClosed
                    event.retryAfter = refusal?.retryAfter
                }
                RetryScope.current?.ended(course.request, exhausted: true)
            }
            throw error
        }
        if let refusal, let last {
            stop(.gateClosed, retryAfter: refusal.retryAfter, &course, context)
            return try final(last, course, context)
        }
        if case .success(let response) = last { response.body.discard() }
        return try final(.failure(error), course, context)
    }

    private func final(
        _ result: Result<Response, any Error>,
        _ course: AttemptCourse,
        _ context: CallContext
    ) throws -> Response {
        RetryScope.current?.ended(course.request, exhausted: course.records.areExhausted)
        switch result {
        case .success(var response):
            response.attempts = course.records
            if case .network = response.source { response.source = .network(attempts: course.records.count) }
            return response
        case .failure(var error as ServiceError):
            if error.code == .timeout, course.records.last?.stopReason == .deadline {
                error = deadlineExceeded(cause: error)
            }
            // Who looks at the error alone must not take the last attempt's innocence for that of all.
            if context.mayBeApplied, let progress = error.progress, progress < .headSent { error.progress = .bodySent }
            error.attempts = course.records
            throw error
        case .failure(let error):
            throw error
        }
    }

    func deadlineExceeded(cause: ServiceError?) -> ServiceError {
        ServiceError(
            .deadlineExceeded,
            "The time for this call was over before a response came; allow more time, or find out what took it.",
            cause: cause,
            progress: cause.map { $0.progress ?? .bodySent } ?? .notSent,
            connectionReused: cause?.connectionReused ?? false
        )
    }
}
