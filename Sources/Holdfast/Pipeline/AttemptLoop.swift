// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import HoldfastSemantics

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// Sends a request, and sends it again if a retrier says so: the only place where attempts are made.
///
/// The retrier decides. The loop overrules it if sending again is impossible, or might act twice (`RetryRules.veto`). The governor
/// of its factory overrules it if a retry would do harm: if the budget of the origin is spent, or its gate is closed.
struct AttemptLoop: Exchanging {
    let transport: any Transport
    let governance: Governance
    let prepare: [PrepareStep]
    let authorization: AuthorizationRefresh?
    let attemptTimeout: Duration?
    /// Whether the transport uses the network itself, so that no other layer can retry below.
    let isInnermost: Bool
    /// Whether an attempt of a call without its own options is only a send.
    private let isUngoverned: Bool

    init(
        transport: any Transport,
        governance: Governance,
        prepare: [PrepareStep],
        authorization: AuthorizationRefresh?,
        attemptTimeout: Duration?
    ) {
        self.transport = AttemptLoop.guarded(transport, governor: governance.own)
        self.governance = governance
        self.prepare = prepare
        self.authorization = authorization
        self.attemptTimeout = attemptTimeout
        isInnermost = transport is URLSessionTransport
        isUngoverned =
            governance.own == nil && prepare.isEmpty && authorization == nil && self.transport.enforcesDeadline
    }

    /// Whether the first attempt needs no permission, no preparation, and no check except that of its status.
    private func needsOnlySending(_ options: CallOptions) -> Bool { isUngoverned && !options.concernAttempts }

    /// The transport wrapped in the parts that the rules ask for: each copy of a hedge passes the circuit separately.
    private static func guarded(_ transport: any Transport, governor: RetryGovernor?) -> any Transport {
        guard let governor else { return transport }
        var guarded = transport
        if governor.rules.allowsResumes { guarded = ResumingTransport(guarded, governor: governor) }
        if let circuit = governor.rules.circuit { guarded = CircuitBreaker(guarded, rules: circuit) }
        if let hedging = governor.rules.hedging {
            guarded = HedgedTransport(guarded, rules: hedging, governor: governor)
        }
        return guarded
    }

    func exchange(_ request: URLRequest, context: inout CallContext) async throws -> Response {
        guard needsOnlySending(context.options), !context.isObserved, context.body.isReplayable,
            context.conditions == nil,
            context.deadline == nil
        else { return try await exchange(request, after: nil, records: [], context: &context) }
        try Task.checkCancellation()
        context.attempt = 1
        context.wantsNewConnection = false
        var records: [AttemptRecord] = []
        let first = await attempt(
            PreparedRequest(request: request),
            limit: attemptTimeout,
            scope: nil,
            records: &records,
            context: &context
        )
        if case .success(let response) = first, response.status.rawValue < 400 {
            NestedRetryScope.current?.ended(request, exhausted: false)
            return response
        }
        return try await exchange(request, after: first, records: records, context: &context)
    }

    /// - Parameters:
    ///   - first: the result of the first attempt, if it was already made.
    ///   - records: its record.
    private func exchange(
        _ request: URLRequest,
        after first: Result<Response, any Error>?,
        records: [AttemptRecord],
        context: inout CallContext
    ) async throws -> Response {
        var first = first
        var request = request
        var state = state(of: request, context)
        state.records = records
        // The transport goes by it too if it sends something again by itself, and for a gateway only the method counts.
        if state.inForce?.rules.isGateway == true, context.options.isIdempotent == true {
            context.options.isIdempotent = nil
        }
        // Whatever ends the exchange, even cancellation during a wait, what an unmade attempt took is given back.
        defer { if state.grant != nil || state.isPaced { state.giveBack(now: context.clock.now) } }
        var authorized = AuthorizedHop(authorization, request: request, context: context)
        keepBodyForReplay(state, context: &context)
        context.wantsNewConnection = false
        var last: Result<Response, any Error>?
        var scheduled: (error: (any Error)?, delay: Duration)?
        while true {
            var result: Result<Response, any Error>
            if let made = first {
                (first, result) = (nil, made)
            } else {
                context.attempt = state.records.count + 1
                var prepared: PreparedRequest
                do {
                    try await waitForTurn(&state, context: context)
                    // Whatever the wait was for, what is stored may have changed meanwhile.
                    if let conditions = context.conditions {
                        request = await conditions.renewed(in: request, context: &context)
                    }
                    // A request that a step rejects was never sent, and retrying is not this loop's decision.
                    prepared = try await self.prepared(
                        request,
                        state: state,
                        authorized: &authorized,
                        context: &context
                    )
                    if let conditions = context.conditions, conditions.areForeign(to: prepared.request, in: context) {
                        // Prepared once more, since a step may have signed them.
                        conditions.withdraw(from: &request, context: &context)
                        prepared = try await self.prepared(
                            request,
                            state: state,
                            authorized: &authorized,
                            context: &context
                        )
                    }
                    if let deadline = context.deadline, context.clock.now >= deadline {
                        // Calls that join an exchange with more time send for themselves.
                        context.attemptIsCut = true
                        throw RefusedAttempt(reason: .deadline)
                    }
                } catch {
                    return try unsent(error, after: last, state: &state, context: context)
                }
                last = nil
                state.isPaced = false
                if let (error, delay) = scheduled.take() {
                    goOn(after: delay, error: error, state: &state, context: context)
                }
                let limit = state.inForce?.rules.attemptTimeout ?? attemptTimeout
                result = await attempt(
                    prepared,
                    limit: limit,
                    scope: state.scope,
                    records: &state.records,
                    context: &context
                )
            }
            if case .failure(let error) = result, error.isCancellation { throw CancellationError() }
            state.attemptEnded(result, context: context)
            if let unconditional = withoutConditions(request, after: result, context: &context) {
                resend("unconditional", state: &state, context: context)
                request = unconditional
                continue
            }
            if case .success(var response) = result,
                let followUp = await authorized?.followUp(&response, isWhole: context.body.isWhole, context: context)
            {
                result = .success(response)
                switch followUp {
                case .resend:
                    let refused = FailedAttempt(
                        AttemptOutcome(result),
                        result: result,
                        request: request,
                        state: state,
                        context: context
                    )
                    // Statuses specific to the application may leave open whether the server acted.
                    if response.status.isServerError, let reason = state.veto(refused.exchange) {
                        stop(reason, state: &state, context: context)
                        return try final(result, state: state, context: context)
                    }
                    response.body.discard()
                    resend("credential", state: &state, context: context)
                    continue
                case .stop(let reason):
                    stop(reason, state: &state, context: context)
                    return try final(result, state: state, context: context)
                case .fail(let error):
                    try checkCancellation(discarding: response)
                    stop(.unauthorized, state: &state, context: context)
                    return try final(.failure(error), state: state, context: context)
                }
            }
            let outcome = AttemptOutcome(result)
            if Invalidation.isAmbiguous(outcome) { context.mayBeApplied = true }
            guard outcome.isFailure else {
                // A redirect may need the content again.
                if case .response(let head) = outcome, !head.status.isRedirection { context.body.releaseReplay() }
                return try final(result, state: state, context: context)
            }
            try checkCancellation(discarding: result)
            let failed = FailedAttempt(outcome, result: result, request: request, state: state, context: context)
            state.explain(failed)
            if try await waitedForNetwork(after: failed, state: &state, context: context) {
                last = result
                continue
            }

            switch try await next(after: failed, request: request, state: &state, context: context) {
            case .stop(let reason):
                stop(reason, state: &state, context: context)
                try checkCancellation(discarding: result)
                return try final(result, state: state, context: context)
            case .retry(let delay):
                scheduled = (failed.error, delay)
                // Until the next attempt begins, the call would end with this one.
                if case .success(var response) = result {
                    context.detach(&response)
                    result = .success(response)
                }
                last = result
                context.wantsNewConnection = failed.exchange.blamesConnection
                if delay > .zero {
                    context.emit(.backoffAwaited) { [last = state.records.last] event in
                        event.describe(last, error: failed.error)
                        event.delay = delay
                    }
                    do {
                        try await wait(until: context.clock.now.advanced(by: delay), context)
                    } catch {
                        return try unsent(error, after: last, state: &state, context: context)
                    }
                }
                if failed.exchange.isRefusedExpectation { request.setValue(nil, forHTTPHeaderField: "Expect") }
            }
        }
    }

    private func state(of request: URLRequest, _ context: CallContext) -> AttemptState {
        let inForce = governance.rules(for: context.options)
        let listens = !isInnermost && inForce?.rules.respectsInnerRetries ?? false
        return AttemptState(
            of: request,
            inForce: inForce,
            governor: governance.governor(for: context.options),
            scope: listens ? NestedRetryScope() : nil,
            context
        )
    }

    /// Keeps what an attempt reads of a one-shot body, if another attempt may follow.
    private func keepBodyForReplay(_ state: AttemptState, context: inout CallContext) {
        guard !context.body.isReplayable else { return }
        let inForce = state.inForce
        guard authorization != nil || inForce?.rules.maxAttempts ?? 1 > 1 else { return }
        let limit = inForce?.rules.replayLimit ?? RetryRules.default.replayLimit
        if limit > 0 { context.body = context.body.teed(limit: limit) }
    }

    /// What follows a failure: the retrier's decision, unless it is impossible or forbidden.
    private func next(
        after failed: FailedAttempt,
        request: URLRequest,
        state: inout AttemptState,
        context: CallContext
    ) async throws -> RetryDecision {
        if let timeLeft = failed.timeLeft, timeLeft <= .zero { return .stop(.deadline) }
        if let retrier = state.retrier, !retrier.allowsMultipleRetries { return .stop(.attemptsExhausted) }
        let asked = state.retrier ?? governance.makeRetrier(for: request, context.options)
        state.retrier = asked
        let decision = await asked.retry(request, after: failed, context: context)
        try checkCancellation(discarding: failed.response)
        guard case .retry(let delay) = decision else { return decision }
        if let reason = state.veto(failed.exchange) { return .stop(reason) }
        if let reason = refusal(of: failed, after: max(delay, .zero), state: &state, context: context) {
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

    /// The result of the call if another attempt was intended and could not begin.
    ///
    /// If this loop refused it, the previous outcome stands; an error of a step, or of the authorization, replaces it.
    private func unsent(
        _ error: any Error,
        after last: Result<Response, any Error>?,
        state: inout AttemptState,
        context: CallContext
    ) throws -> Response {
        if error.isCancellation {
            if case .success(let response) = last { response.body.discard() }
            throw CancellationError()
        }
        var error = error
        if let refused = error as? RefusedAttempt {
            if !state.records.isEmpty {
                stop(refused.reason, gateWait: refused.wait, state: &state, context: context)
            } else if refused.reason == .gateClosed {
                state.account?.stopped(.gateClosed)
                context.emit(.retriesStopped) { event in
                    event.stopReason = .gateClosed
                    event.retryAfter = refused.wait
                }
                NestedRetryScope.current?.ended(state.request, exhausted: true)
            }
            if let last { return try final(last, state: state, context: context) }
            error = refused.error(context)
        }
        if state.records.isEmpty { throw error }
        if case .success(let response) = last { response.body.discard() }
        return try final(.failure(error), state: state, context: context)
    }

    private func final(
        _ result: Result<Response, any Error>,
        state: AttemptState,
        context: CallContext
    ) throws -> Response {
        NestedRetryScope.current?.ended(state.request, exhausted: state.records.areExhausted)
        switch result {
        case .success(var response):
            // They say by now what followed each of them.
            response.attempts = state.records
            return response
        case .failure(var error as ServiceError):
            if error.code == .timeout, state.records.last?.stopReason == .deadline {
                error = deadlineExceeded(cause: error, context)
            }
            // Code that only looks at the error must not conclude from the last attempt that no attempt had an effect.
            if context.mayBeApplied, let progress = error.progress, progress < .headSent { error.progress = .bodySent }
            error.attempts = state.records
            throw error
        case .failure(let error):
            throw error
        }
    }

    private func deadlineExceeded(cause: ServiceError, _ context: CallContext) -> ServiceError {
        var error = context.deadlineExceeded(cause: cause, progress: cause.progress ?? .bodySent)
        error.connectionReused = cause.connectionReused
        return error
    }
}

/// How one attempt is made.
extension AttemptLoop {
    /// The request to send: edited by each `prepare` step, and with the information for the server that the rules ask for.
    func prepared(
        _ request: URLRequest,
        state: AttemptState,
        authorized: inout AuthorizedHop?,
        context: inout CallContext
    ) async throws -> PreparedRequest {
        try Task.checkCancellation()
        var prepared = request
        try await authorized?.apply(to: &prepared, &context)
        let announced = state.inForce?.rules.announce(context, on: &prepared)
        let unedited = context.withholdsAdditions ? prepared : nil
        try await context.options.renewal?(&prepared, context)
        for step in prepare {
            try await step(&prepared, context)
            if let unedited { prepared.withholdAdditions(to: unedited) }
        }
        for step in context.options.prepare {
            try await step(&prepared, context)
            // After each step, so that a later step signs, or records, what is sent.
            if let unedited { prepared.withholdAdditions(to: unedited) }
        }
        if !prepare.isEmpty || !context.options.prepare.isEmpty { try prepared.checkHead() }
        return PreparedRequest(request: prepared, announcedFields: announced)
    }

    /// Makes one attempt, and adds its record.
    ///
    /// - Parameters:
    ///   - limit: how long it may take.
    ///   - scope: finds out whether a layer below retries.
    ///   - records: those of the attempts before it.
    func attempt(
        _ prepared: PreparedRequest,
        limit: Duration?,
        scope: NestedRetryScope?,
        records: inout [AttemptRecord],
        context: inout CallContext
    ) async -> Result<Response, any Error> {
        let request = prepared.request
        let start = context.clock.now
        do {
            let end = limit.map { start.advanced(by: $0) }
            context.attemptDeadline = earlier(of: context.deadline, and: end)
            context.attemptIsCut = context.attemptDeadline.map { $0 != end } ?? false
            context.exchange = SentExchange(
                request: request,
                presented: context.presented(by: request),
                requestTime: context.clock.timestamp,
                announced: prepared.announcedFields
            )
            context.emit(.attemptStarted) { [attempt = context.attempt] event in event.attempt = attempt }
            var response =
                scope == nil && (context.attemptDeadline == nil || transport.enforcesDeadline)
                ? try await transport.send(request, body: context.body, context: context)
                : try await watched(request, scope: scope, context: context)
            arrive(&response, request: request, context: &context)
            context.options.cookies?.keep(received: response)
            if context.isObserved { response.body = response.body.announcingEnd(to: context) }
            if context.options.acceptance?.checksAttempts == true {
                try await check(&response, context: context)
            }
            records.append(record(of: response, error: nil, start: start, context: context))
            response.attempts = records
            if case .network = response.source { response.source = .network(attempts: records.count) }
            return .success(response)
        } catch {
            records.append(record(of: nil, error: error, start: start, context: context))
            return .failure(error)
        }
    }

    /// Lets the caller's acceptance say whether the attempt was a success.
    private func check(_ response: inout Response, context: CallContext) async throws {
        let isOwnPart = context.conditions?.asksPart == true && response.status == .partialContent
        guard let acceptance = context.options.acceptance, response.status.isSuccessful, !isOwnPart else { return }
        do {
            try await acceptance.check(&response)
        } catch var error as ServiceError {
            // Whatever happened in the acceptance, this request was answered.
            error.progress = max(error.progress ?? .headReceived, .headReceived)
            throw error
        }
    }

    /// Sends a request through a transport that does not keep the deadline itself, or above a layer that may retry.
    private func watched(
        _ request: URLRequest,
        scope: NestedRetryScope?,
        context: CallContext
    ) async throws -> Response {
        guard let scope else { return try await limited(request, context: context) }
        scope.begin(request)
        return try await NestedRetryScope.$current.withValue(scope) { try await limited(request, context: context) }
    }

    private func limited(_ request: URLRequest, context: CallContext) async throws -> Response {
        guard let deadline = context.attemptDeadline, !transport.enforcesDeadline else {
            return try await transport.send(request, body: context.body, context: context)
        }
        let transport = transport
        return try await withDeadline(
            deadline,
            on: context.clock,
            failure: context.attemptTimeout(progress: .bodySent),
            discard: { $0.body.discard() }
        ) {
            try await transport.send(request, body: context.body, context: context)
        }
    }

    private func record(
        of response: Response?,
        error: (any Error)?,
        start: MonotonicInstant,
        context: CallContext
    ) -> AttemptRecord {
        let end = context.clock.now
        context.emit(.attemptEnded) { event in
            event.attempt = context.attempt
            event.status = response?.status
            if let body = response?.body, body.source == nil { event.bytes = body.length ?? 0 }
            if let error { event.describe(error) }
            event.delay = start.duration(to: end)
        }
        return AttemptRecord(
            number: context.attempt,
            start: start,
            end: end,
            status: response?.status,
            errorCode: error.map { ($0 as? ServiceError)?.code ?? .other },
            progress: (error as? ServiceError)?.progress,
            nestedAttempts: response?.attempts ?? (error as? ServiceError)?.attempts ?? []
        )
    }

    /// The caller's own request, if a response does not answer the cache's conditions: a response to another request must not be
    /// used, so the request is sent again in its original form (RFC 9111 §4.3.3).
    func withoutConditions(
        _ request: URLRequest,
        after result: Result<Response, any Error>,
        context: inout CallContext
    ) -> URLRequest? {
        guard case .success(let response) = result, let conditions = context.conditions,
            !conditions.isAnswered(by: response, in: context), context.body.isWhole
        else { return nil }
        context.conditions = nil
        response.body.discard()
        return conditions.withdrawn(from: request)
    }
}

/// A request ready to send.
struct PreparedRequest {
    let request: URLRequest
    /// The fields that tell the server the attempt number and the time left; nil if there are none.
    var announcedFields: [FieldName]?
}

extension RetryRules {
    /// Tells the server the number of the attempt and the time left, if the rules name fields for them.
    ///
    /// - Returns: the names of the fields that were set; nil if there are none.
    fileprivate func announce(_ context: CallContext, on request: inout URLRequest) -> [FieldName]? {
        var announced: [FieldName]?
        if let attemptField, context.attempt > 1 {
            request.setValue(String(context.attempt), forHTTPHeaderField: attemptField.rawName)
            announced = [attemptField]
        }
        if let timeLeftField, let left = context.millisecondsLeft {
            request.setValue(left, forHTTPHeaderField: timeLeftField.rawName)
            announced = (announced ?? []) + [timeLeftField]
        }
        return announced
    }
}

extension CallContext {
    /// What the server is told about the time left; nil without a deadline.
    fileprivate var millisecondsLeft: String? {
        guard let deadline else { return nil }
        let parts = min(max(clock.now.duration(to: deadline), .zero), .seconds(1 << 40)).components
        return String(parts.seconds * 1000 + parts.attoseconds / 1_000_000_000_000_000)
    }

    /// Announces the time left once more, in a request that announces it and is sent later than its attempt began.
    func renewTimeLeft(in request: inout URLRequest) {
        guard let field = timeLimits.governance?.rules(for: options)?.rules.timeLeftField,
            exchange?.announcedFields.contains(field) == true, request.field(field) != nil
        else { return }
        request.setValue(millisecondsLeft, forHTTPHeaderField: field.rawName)
    }
}

private func earlier(of first: MonotonicInstant?, and second: MonotonicInstant?) -> MonotonicInstant? {
    guard let first, let second else { return first ?? second }
    return min(first, second)
}

extension AttemptOutcome {
    init(_ result: Result<Response, any Error>) {
        switch result {
        case .success(let response): self = .response(response.headForRetrying)
        case .failure(let error): self = .failure(ServiceError.attemptFailure(of: error))
        }
    }
}

extension AttemptLoop {
    /// Records in a response when it was requested and received, and its request.
    func arrive(_ response: inout Response, request: URLRequest, context: inout CallContext) {
        let responseTime = context.clock.timestamp
        context.exchange?.responseTime = responseTime
        // A transport that sent a later copy gives the time itself; a time from a store below is older than the attempt.
        if let sent = context.exchange?.requestTime {
            response.requestTime = response.requestTime.map { max($0, sent) } ?? sent
        }
        response.responseTime = responseTime
        if response.url == nil { response.url = request.url }
        if case .unknown = response.presentation, let presented = context.exchange?.presented {
            response.presentation = .presented(presented)
        }
    }
}

/// The events about the loop's decisions.
extension AttemptLoop {
    /// Records and reports that no further attempt follows.
    func stop(
        _ reason: StopReason,
        gateWait: Duration? = nil,
        state: inout AttemptState,
        context: CallContext
    ) {
        state.stops(for: reason, gateWait: gateWait)
        context.emit(.retriesStopped) { [last = state.records.last] event in event.describe(last, error: nil) }
    }

    /// Records and reports that a retry follows: not before nothing can refuse it any more.
    func goOn(after delay: Duration, error: (any Error)?, state: inout AttemptState, context: CallContext) {
        state.goesOn(after: delay)
        context.emit(.retryScheduled) { [last = state.records.last] event in
            event.describe(last, error: error)
            event.delay = delay
        }
    }

    /// Records and reports that another attempt follows without asking a retrier.
    func resend(_ cause: String, after delay: Duration = .zero, state: inout AttemptState, context: CallContext) {
        state.resendsAtOnce(after: delay)
        context.emit(.resendScheduled) { event in
            event.attempt = context.attempt
            event.delay = delay
            event.detail = cause
        }
    }
}

extension ServiceEvent {
    /// Records an error and what it says about its exchange.
    mutating func describe(_ error: any Error) {
        self.error = error
        guard let error = error as? ServiceError else { return }
        if status == nil { status = error.response?.status }
        progress = error.progress
        if error.connectionReused { connectionReused = true }
        retryAfter = error.retryAfter
        stopReason = error.attempts.last?.stopReason
    }

    /// Records the result of an attempt.
    mutating func describe(_ record: AttemptRecord?, error: (any Error)?) {
        if let error { describe(error) }
        guard let record else { return }
        attempt = record.number
        status = record.status
        progress = record.progress
        retryClass = record.retryClass
        retryAfter = record.retryAfter
        stopReason = record.stopReason
    }
}

/// The waits of the attempt loop: all use the pipeline's clock, and each can end in an attempt.
extension AttemptLoop {
    /// Waits until `instant`, and tells those who wait for the exchange.
    func wait(until instant: MonotonicInstant, _ context: CallContext) async throws {
        context.fetch?.isBackingOff(until: instant)
        try await context.clock.sleep(until: instant)
        context.fetch?.isBackingOff(until: nil)
    }

    /// Waits until the next attempt may be sent: for the gates, the learned rate and the budget.
    ///
    /// - Throws: ``RefusedAttempt`` if the budget refuses it, or a gate opens, or the learned rate allows it, too late for this call.
    func waitForTurn(_ state: inout AttemptState, context: CallContext) async throws {
        while true {
            try await waitAtGate(&state, context: context)
            try await waitForPace(&state, context: context)
            guard let cause = state.pending else { return }
            try await waitForBudget(cause, state: &state, context: context)
            // A retry that waits at a gate must not keep others from retrying.
            guard !state.isProbe, closedGate(state, context: context) != nil else { return }
            state.giveBack(now: context.clock.now)
            state.pending = cause
        }
    }

    private func waitForBudget(_ cause: RetryCause, state: inout AttemptState, context: CallContext) async throws {
        state.pending = nil
        state.chooseBudget(context)
        guard let account = state.account, let rules = state.rules else { return }
        var waits = false
        let grant = try await account.permission(
            cause,
            rules: rules,
            traffic: state.traffic,
            deadline: context.deadline,
            context: context
        ) { until in
            context.fetch?.isBackingOff(until: until)
            guard !waits else { return }
            waits = true
            context.emit(.budgetAwaited) { $0.attempt = context.attempt }
        }
        guard let grant else { throw RefusedAttempt(reason: .budget) }
        state.grant = grant
    }

    /// The gate that is closed for a call; asking does not count as a probe.
    private func closedGate(_ state: AttemptState, context: CallContext) -> RetryGates.Gate? {
        guard let account = state.account, account.mayBeClosed, state.inForce?.rules.closesGate == true,
            case .closed(let gate) = account.check(state.place, admitsProbe: false, now: context.clock.now)
        else { return nil }
        return gate
    }

    /// Waits until the call's gates are open, or it may pass as a probe.
    private func waitAtGate(_ state: inout AttemptState, context: CallContext) async throws {
        state.isProbe = false
        guard let account = state.account, account.mayBeClosed, let governor = state.governor,
            let rules = state.rules, rules.closesGate
        else { return }
        while true {
            let now = context.clock.now
            let gate: RetryGates.Gate
            switch account.check(state.place, admitsProbe: true, now: now) {
            case .open: return
            case .probe:
                state.isProbe = true
                return
            case .closed(let closed): gate = closed
            }
            let opens = MonotonicInstant(sinceOrigin: gate.opens)
            let wait = now.duration(to: opens)
            var end = opens.advanced(by: gate.spread * governor.sample())
            if wait > rules.maxServerDelay || !mayBeHeldBack(until: end, state: state, rules: rules, context: context) {
                // The first probe may find the gate open.
                guard let held = gate.holdsUntil.map(MonotonicInstant.init(sinceOrigin:)),
                    mayBeHeldBack(until: held, state: state, rules: rules, context: context)
                else { throw RefusedAttempt(reason: .gateClosed, wait: wait) }
                end = held
            }
            guard account.beginsWaiting() else { throw RefusedAttempt(reason: .gateClosed, wait: wait) }
            defer { account.endsWaiting() }
            context.emit(.gateAwaited) { $0.delay = now.duration(to: end) }
            context.fetch?.isBackingOff(until: end)
            try await account.rest(at: gate, until: end, context)
            context.fetch?.isBackingOff(until: nil)
            // With a clock that does not move, as in tests, the wait counts with its intended length.
            let waited = now.duration(to: context.clock.now)
            state.heldBack += waited > .zero ? waited : now.duration(to: end)
        }
    }

    /// Whether the call may wait until `end` before its attempt: within its deadline and, after a first wait, for no longer than a
    /// parked retry, so that a gate that closes again and again does not hold it forever.
    private func mayBeHeldBack(
        until end: MonotonicInstant,
        state: AttemptState,
        rules: RetryRules,
        context: CallContext
    ) -> Bool {
        let wait = context.clock.now.duration(to: end)
        guard mayWait(until: end, rules: rules, context: context) else { return false }
        return state.heldBack == .zero || state.heldBack + wait <= rules.maxParking
    }

    /// Waits for the learned rate, if the rules use one and the server has throttled.
    ///
    /// - Throws: ``RefusedAttempt`` at once if the call's turn comes too late, or if too many are waiting.
    private func waitForPace(_ state: inout AttemptState, context: CallContext) async throws {
        guard state.inForce?.rules.pacesAdaptively == true, let account = state.account, let rules = state.rules
        else { return }
        while let wait = account.pace(now: context.clock.now) {
            let end = context.clock.now.advanced(by: wait)
            guard wait <= rules.maxServerDelay,
                mayBeHeldBack(until: end, state: state, rules: rules, context: context),
                account.beginsWaiting()
            else { throw RefusedAttempt(reason: .gateClosed, wait: wait) }
            defer { account.endsWaiting() }
            state.heldBack += wait
            context.emit(.paceAwaited) { $0.delay = wait }
            try await self.wait(until: end, context)
        }
        state.isPaced = true
    }

    /// Why a retry must not follow after all; nil if it may, although it may still be refused when it is due.
    func refusal(
        of failed: FailedAttempt,
        after delay: Duration,
        state: inout AttemptState,
        context: CallContext
    ) -> StopReason? {
        // The retrier may have taken some time.
        let now = context.clock.now
        let timeLeft = context.deadline.map { now.duration(to: $0) }
        guard (state.rules ?? .default).fits(delay, within: timeLeft) else { return .deadline }
        guard let account = state.account, let rules = state.rules else { return nil }
        if let gate = closedGate(state, context: context), gate.holdsUntil == nil {
            let wait = gate.opens - now.sinceOrigin
            if wait > rules.maxServerDelay { return .serverDelayTooLong }
            if !rules.fits(wait, within: timeLeft) { return .gateClosed }
        }
        guard let cause = state.cause(of: failed.exchange, rules) else { return nil }
        state.chooseBudget(context)
        switch account.plan(cause, after: delay, rules: rules, traffic: state.traffic, now: now) {
        case .granted(let grant): state.grant = grant
        case .asks: state.pending = cause
        case .refused: return .budget
        }
        return nil
    }

    /// Waits for the network if the machine is offline and the rules say so; such an attempt does not count.
    ///
    /// - Returns: whether to try again now.
    func waitedForNetwork(
        after failed: FailedAttempt,
        state: inout AttemptState,
        context: CallContext
    ) async throws -> Bool {
        guard let rules = state.rules, rules.waitsForConnectivity, let governor = state.governor,
            let connectivity = governor.connectivity, failed.bodyIsReplayable,
            case .failure(let failure) = failed.outcome, failure.progress == .notSent,
            failure.kind == .offline || failure.kind == .resolve || failure.kind == .connect, !connectivity.isOnline
        else { return false }
        // Nobody would notice what waits in the background, and its places are few.
        guard !context.isBackground, let account = state.account, account.beginsWaiting()
        else { return false }
        defer { account.endsWaiting() }
        context.emit(.connectivityAwaited) { $0.attempt = context.attempt }
        let start = context.clock.now
        do {
            try await context.beforeDeadline { try await connectivity.waitUntilOnline() }
        } catch let error as ServiceError where error.code == .timeout {
            return false
        }
        // All waiting calls are resumed at the same moment, but must not all send at the same moment.
        let spread = Duration.seconds(1) * governor.sample()
        let end = context.clock.now.advanced(by: spread)
        guard mayWait(until: end, rules: rules, context: context) else { return false }
        try await self.wait(until: end, context)
        state.wasOffline()
        resend("online", after: start.duration(to: end), state: &state, context: context)
        return true
    }

    private func mayWait(until end: MonotonicInstant, rules: RetryRules, context: CallContext) -> Bool {
        let now = context.clock.now
        return rules.fits(now.duration(to: end), within: context.deadline.map { now.duration(to: $0) })
    }

}

/// Why the loop does not make an intended attempt.
struct RefusedAttempt: Error {
    let reason: StopReason
    /// How long a gate, or the learned rate, holds it back.
    var wait: Duration?

    /// The error of a call that has no earlier outcome.
    fileprivate func error(_ context: CallContext) -> ServiceError {
        guard let wait else {
            return context.deadlineExceeded(
                "before the request was sent",
                advice: "Allow more time, or find out what took it: a hook, a `prepare` step or an earlier attempt.",
                progress: .notSent
            )
        }
        var error = ServiceError(
            .throttled,
            "The server asked for another \(wait) without requests, longer than this call may wait; send it again after that, "
                + "or allow more time.",
            progress: .notSent
        )
        error.retryAfter = wait
        return error
    }
}
