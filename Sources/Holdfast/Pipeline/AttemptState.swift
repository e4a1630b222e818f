// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import HoldfastSemantics
private import Synchronization

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// What the attempt loop knows about one exchange between its attempts.
struct AttemptState {
    /// The rules of this call; nil if its factory has none, in which case nothing is governed.
    let inForce: RulesInForce?
    let governor: RetryGovernor?
    let account: RetryAccount?
    /// Whom the next attempt is for: callers leave and join an exchange.
    var traffic: RetryAccount.Traffic
    let request: URLRequest
    private let principal: String?
    private let credentialFields: [FieldName]
    /// Finds out whether a layer below has retried; nil if there can be none.
    let scope: NestedRetryScope?
    var records: [AttemptRecord] = []
    var retrier: (any Retrier)?
    /// How many of the attempts were resends without asking a retrier.
    private var uncounted = 0
    /// How many of the attempts were not sent, because the machine was offline.
    private var unsent = 0
    /// Whether the call is among those that the counters and the budget know.
    private var isCounted = false
    /// The free resends that the call has already had.
    private var freeResends: Set<FreeResend> = []
    /// How long the exchange has been held back by gates and by the learned rate.
    var heldBack: Duration = .zero
    /// What permitted the next or current attempt; must be ended or given back.
    var grant: RetryGrant?
    /// Whether the learned rate has counted the next attempt; must be given back if it is not made.
    var isPaced = false
    /// The permission that the next attempt still needs when it is due.
    var pending: RetryCause?
    /// Whether the next or current attempt passes a closed gate as a probe.
    var isProbe = false

    init(
        of request: URLRequest,
        inForce: RulesInForce?,
        governor: RetryGovernor?,
        scope: NestedRetryScope?,
        _ context: CallContext
    ) {
        self.request = request
        self.inForce = inForce
        self.governor = governor
        self.scope = scope
        principal = context.options.principal
        credentialFields = context.options.credentialFields
        traffic = context.isBackground ? .background : .caller
        account = governor?.account(for: request, now: context.clock.now)
        chooseBudget(context)
    }

    /// Chooses the budget for the next attempt.
    mutating func chooseBudget(_ context: CallContext) {
        traffic = context.isBackground ? .background : .caller
        guard let account, let rules, inForce !== governor?.inForce else { return }
        traffic = account.traffic(
            under: rules.budget,
            isBackground: context.isBackground,
            now: context.clock.now
        )
    }

    /// All rules, for decisions after a failure.
    var rules: RetryRules? { inForce?.rules }

    /// How many attempts there were, without resends that no retrier was asked about.
    var countedAttempts: Int { records.count - uncounted }

    /// The keys of its gates: the resource, and the caller as far as the request shows. Used only if a gate is concerned.
    var place: GatePlace {
        var hasher = Hasher()
        hasher.combine(principal)
        for name in [.authorization, .cookie] + credentialFields { hasher.combine(request.field(name)) }
        return GatePlace(request, credential: hasher.finalize())
    }

    /// Records the end of an attempt, for the budget and for the gates.
    mutating func attemptEnded(_ result: Result<Response, any Error>, context: CallContext) {
        guard let account, let now = records.last?.end else { return }
        var end = RetryAccount.AttemptEnd(
            grant: grant,
            isFirst: !isCounted,
            succeeded: false,
            traffic: traffic
        )
        switch result {
        case .success(let response):
            end.succeeded = !isTrouble(response, in: context)
            grant = nil
            let isThrottled = response.status == .tooManyRequests || response.status == .serviceUnavailable
            if isThrottled || end.succeeded { account.paceAnswered(isThrottled: isThrottled, now: now) }
            let asks = notice(of: response, context)
            if asks != nil || account.mayBeClosed {
                end.notice = (asks ?? GateNotice(.answer(succeeded: end.succeeded)), place, isProbe)
            }
            isCounted = true
            guard account.attemptEnded(end, now: now), let asks else { return }
            context.emit(.gateClosed) { event in
                event.attempt = context.attempt
                event.status = response.status
                event.delay = asks.asked
            }
        case .failure(let error):
            let failure = ServiceError.attemptFailure(of: error)
            // If the call timed out before anything was sent, the server was not asked.
            let wasAsked = (error as? ServiceError)?.code != .deadlineExceeded || failure.progress > .notSent
            guard wasAsked, AttemptOutcome.failure(failure).isServerTrouble else { return giveBack(now: now) }
            grant = nil
            isCounted = true
            _ = account.attemptEnded(end, now: now)
        }
    }

    /// Whether a response counts as a failure of the retry that got it.
    private func isTrouble(_ response: Response, in context: CallContext) -> Bool {
        let outcome = AttemptOutcome.response(response.headForRetrying)
        if outcome.isServerTrouble { return true }
        guard response.status.rawValue >= 400, let rules else { return false }
        // A custom retrier may send requests again that the rules would not.
        if grant != nil, records.dropLast().last?.status == response.status { return true }
        let failed = FailedExchange(
            outcome,
            method: context.method(of: request),
            fields: context.exchange?.presentedFields ?? HeaderFields(),
            bodyIsReplayable: true,
            declaredIdempotent: nil,
            receivedAt: response.responseTime ?? context.clock.timestamp
        )
        return rules.counts(failed)
    }

    private func notice(of response: Response, _ context: CallContext) -> GateNotice? {
        let receivedAt = response.responseTime ?? context.clock.timestamp
        return inForce?.rules.gateNotice(response.headForRetrying, receivedAt: receivedAt)
    }

    /// Gives back the grant of an attempt that was not made, or whose end says nothing, and the place in the learned rate of one that
    /// was not made.
    mutating func giveBack(now: MonotonicInstant) {
        if isPaced { account?.giveBackPace() }
        if let grant { account?.giveBack(grant, traffic: traffic, now: now) }
        (grant, isPaced) = (nil, false)
    }

    /// The cause by which a retry is charged to the budget; nil if it is free.
    ///
    /// A resend is free if it cannot cause a storm: it is made once for each call, and its success shows at once.
    mutating func cause(of failed: FailedExchange, _ rules: RetryRules) -> RetryCause? {
        let retryClass = records.last?.retryClass ?? rules.classify(failed)
        if let free = rules.freeResend(after: failed, retryClass), freeResends.insert(free).inserted { return nil }
        // A custom retrier may send requests again that the rules would not.
        return rules.cause(of: retryClass, outcome: failed.outcome) ?? .transient
    }

    /// Why the request must not be sent again, whatever a retrier says.
    func veto(_ failed: FailedExchange) -> StopReason? {
        (rules ?? .default).veto(
            failed,
            sends: records.count - unsent,
            most: rules?.mostSends ?? RetryRules.mostUngovernedSends
        )
    }

    /// Records what a failure proved and what the server asked for; by the default rules if the call has none, as for its
    /// retrier.
    mutating func explain(_ failed: FailedAttempt) {
        records[records.count - 1].retryClass = failed.classification
        records[records.count - 1].retryAfter = (rules ?? .default).serverDelay(failed.exchange)
    }

    /// Records that another attempt follows.
    mutating func goesOn(after delay: Duration) {
        records[records.count - 1].delay = delay
    }

    /// Records that another attempt follows without asking a retrier; such attempts do not count.
    mutating func resendsAtOnce(after delay: Duration = .zero) {
        goesOn(after: delay)
        uncounted += 1
    }

    /// Records that the last attempt was not sent, because the machine was offline.
    mutating func wasOffline() { unsent += 1 }

    /// Records that no further attempt follows.
    ///
    /// - Parameter gateWait: what is left of the gate that refuses it; what the server told this call is kept.
    mutating func stops(for reason: StopReason, gateWait: Duration? = nil) {
        records[records.count - 1].stopReason = reason
        // A resend may have been announced.
        records[records.count - 1].delay = nil
        records[records.count - 1].retryAfter = records[records.count - 1].retryAfter ?? gateWait
        account?.stopped(reason)
    }
}

extension FailedAttempt {
    /// What the retrier gets about a failed attempt.
    init(
        _ outcome: AttemptOutcome,
        result: Result<Response, any Error>,
        request: URLRequest,
        state: AttemptState,
        context: CallContext
    ) {
        var exchange = FailedExchange(
            outcome,
            // A step may have changed it, and what was sent counts.
            method: context.method(of: context.exchange?.request ?? request),
            fields: context.exchange?.presentedFields ?? HeaderFields(request.allHTTPHeaderFields ?? [:]),
            attempt: state.countedAttempts,
            bodyIsReplayable: context.body.isWhole,
            declaredIdempotent: context.options.isIdempotent,
            timeLeft: context.deadline.map { context.clock.now.duration(to: $0) },
            receivedAt: context.exchange?.responseTime ?? context.clock.timestamp
        )
        if let own = state.inForce?.rules.attemptField, request.field(own) == nil {
            exchange.fields[own] = nil
        }
        let nested = state.records.last?.nestedAttempts ?? []
        exchange.wasRetriedBelow = state.scope?.wasRetried ?? false || nested.areExhausted
        self.exchange = exchange
        classification = (state.rules ?? .default).classify(exchange)
        switch result {
        case .success(let response): (self.response, error) = (response, nil)
        case .failure(let failure): (response, error) = (nil, failure)
        }
    }
}

/// Tells an attempt whether something below it has already retried and given up.
///
/// Layers of retries multiply: three layers with three attempts each send one call 27 times. The layer next to the failure knows
/// most about it, so it retries, and its failure is final for the layers above: they find this mark, whatever happened to the error
/// on its way up.
final class NestedRetryScope: Sendable {
    /// The scope of the attempt that this task works for.
    @TaskLocal static var current: NestedRetryScope?

    private struct State {
        var url: URL?
        var isExhausted = false
    }

    private let state = Mutex(State())

    /// Whether the request was retried below and given up.
    var wasRetried: Bool { state.withLock { $0.isExhausted } }

    /// Begins an attempt with this request.
    func begin(_ request: URLRequest) {
        state.withLock { $0 = State(url: request.url) }
    }

    /// Records how a call below ended; a call to another URL, such as for a token, says nothing about the attempt.
    func ended(_ request: URLRequest, exhausted: Bool) {
        state.withLock { state in
            if state.url == request.url { state.isExhausted = exhausted }
        }
    }
}

extension [AttemptRecord] {
    /// Whether the attempts show that retrying continued until something prevented more.
    var areExhausted: Bool {
        switch last?.stopReason {
        case .budget, .serverForbids, .serverDelayTooLong, .gateClosed, .circuitOpen, .retriedBelow: true
        case .attemptsExhausted, .deadline: count > 1
        default: false
        }
    }
}
