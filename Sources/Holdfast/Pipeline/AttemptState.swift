// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import HoldfastSemantics
private import Synchronization

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// What the attempt loop knows of one exchange between its attempts.
struct AttemptState {
    /// The rules of this call; nil where its factory has none, and then nothing is governed.
    let inForce: RulesInForce?
    let governor: RetryGovernor?
    let account: RetryAccount?
    /// Who the attempt to come is made for: callers leave an exchange, and join it.
    var traffic: RetryAccount.Traffic
    let request: URLRequest
    private let principal: String?
    private let credentialFields: [FieldName]
    /// Finds out whether a layer below has retried; nil where none can stand there.
    let scope: NestedRetryScope?
    var records: [AttemptRecord] = []
    var retrier: (any Retrier)?
    /// How many of the attempts were resends that no retrier was asked about.
    private var uncounted = 0
    /// The resends that cost nothing, each of which the call gets once.
    private var freeResends: Set<FreeResend> = []
    /// For how long the exchange has been held back, by gates and by the learned rate.
    var heldBack: Duration = .zero
    /// What the attempt to come, or in hand, was permitted by; must be ended or given back.
    var grant: RetryGrant?
    /// What the attempt to come has yet to be permitted for, once it is due.
    var pending: RetryCause?
    /// Whether the attempt to come, or in hand, was let through a closed gate.
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

    /// Chooses the budget that pays for the attempt to come.
    mutating func chooseBudget(_ context: CallContext) {
        traffic = context.isBackground ? .background : .caller
        guard let account, let rules, inForce !== governor?.inForce else { return }
        traffic = account.traffic(
            under: rules.budget,
            isBackground: context.isBackground,
            now: context.clock.now
        )
    }

    /// The rules, all of them; for what happens after a failure.
    var rules: RetryRules? { inForce?.rules }

    /// How many attempts there were, without the resends that no retrier was asked about.
    var countedAttempts: Int { records.count - uncounted }

    /// Whose gates they are: the resource, and the caller as far as the request tells. Read only where a gate is concerned.
    var place: GatePlace {
        var hasher = Hasher()
        hasher.combine(principal)
        hasher.combine(request.value(forHTTPHeaderField: "Authorization"))
        hasher.combine(request.value(forHTTPHeaderField: "Cookie"))
        for name in credentialFields { hasher.combine(request.value(forHTTPHeaderField: name.rawName)) }
        return GatePlace(request, credential: hasher.finalize())
    }

    /// Takes note of how an attempt ended, for the budget and for the gates.
    mutating func attemptEnded(_ result: Result<Response, any Error>, context: CallContext) {
        guard let account, let now = records.last?.end else { return }
        var end = RetryAccount.AttemptEnd(
            grant: grant,
            isFirst: records.count == 1,
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
            guard account.attemptEnded(end, now: now), let asks else { return }
            context.emit(.gateClosed) { event in
                event.attempt = context.attempt
                event.status = response.status
                event.delay = asks.asked
            }
        case .failure(let error):
            let failure = ServiceError.attemptFailure(of: error)
            // Where the time was over before anything was sent, the server has not been asked.
            let wasAsked = (error as? ServiceError)?.code != .deadlineExceeded || failure.progress > .notSent
            guard wasAsked, AttemptOutcome.failure(failure).isServerTrouble else { return giveBack(now: now) }
            grant = nil
            _ = account.attemptEnded(end, now: now)
        }
    }

    /// Whether a response is none that a retry was made for.
    private func isTrouble(_ response: Response, in context: CallContext) -> Bool {
        let outcome = AttemptOutcome.response(response.headForRetrying)
        if outcome.isServerTrouble { return true }
        guard response.status.rawValue >= 400, let rules else { return false }
        // A retrier of one's own may send again what the rules would not.
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

    /// Gives back what was granted to an attempt that was not made, or whose end says nothing.
    mutating func giveBack(now: MonotonicInstant) {
        guard let grant, let account else { return }
        account.giveBack(grant, traffic: traffic, now: now)
        self.grant = nil
    }

    /// What a retry costs the budget by; nil where it is free.
    ///
    /// Free is what cannot feed a storm: a resend that is made once a call and shows its worth at once.
    mutating func cause(of failed: FailedExchange, _ rules: RetryRules) -> RetryCause? {
        let retryClass = records.last?.retryClass ?? rules.classify(failed)
        if let free = rules.freeResend(after: failed, retryClass), freeResends.insert(free).inserted { return nil }
        // A retrier of one's own may send again what the rules would not.
        return rules.cause(of: retryClass, outcome: failed.outcome) ?? .transient
    }

    /// Why the request is not sent again whatever a retrier says.
    func veto(_ failed: FailedExchange) -> StopReason? {
        (rules ?? .default).veto(failed, sends: records.count, most: rules?.mostSends ?? RetryRules.mostUngovernedSends)
    }

    /// Puts down what a failure proved and what the server asked for.
    mutating func explain(_ failed: FailedAttempt) {
        guard let rules else { return }
        records[records.count - 1].retryClass = failed.classification
        records[records.count - 1].retryAfter = rules.serverDelay(failed.exchange)
    }

    /// Notes that another attempt follows.
    mutating func goesOn(after delay: Duration) {
        records[records.count - 1].delay = delay
    }

    /// Notes that another attempt follows that no retrier was asked about, and that none of them counts.
    mutating func resendsAtOnce(after delay: Duration = .zero) {
        goesOn(after: delay)
        uncounted += 1
    }

    /// Notes that no further attempt follows.
    mutating func stops(for reason: StopReason, retryAfter: Duration? = nil) {
        records[records.count - 1].stopReason = reason
        if let retryAfter { records[records.count - 1].retryAfter = retryAfter }
        account?.stopped(reason)
    }
}

extension FailedAttempt {
    /// What the retrier is told of an attempt that failed.
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
        if let own = state.inForce?.rules.attemptField, request.value(forHTTPHeaderField: own.rawName) == nil {
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

/// Tells an attempt whether something below it has retried already and given up.
///
/// Layers of retries multiply: three of three attempts each make 27 sends of one call. The layer next to the failure knows
/// most of it, so it retries, and its failure is final for those above: they find the mark, whatever has become of the error
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

    /// An attempt begins with this request.
    func begin(_ request: URLRequest) {
        state.withLock { $0 = State(url: request.url) }
    }

    /// Notes how a call below ended; one to another URL, such as for a token, says nothing of the attempt.
    func ended(_ request: URLRequest, exhausted: Bool) {
        state.withLock { state in
            if state.url == request.url { state.isExhausted = exhausted }
        }
    }
}

extension [AttemptRecord] {
    /// Whether the attempts say that retrying went on until something forbade more of it.
    var areExhausted: Bool {
        switch last?.stopReason {
        case .budget, .serverForbids, .serverDelayTooLong, .gateClosed, .circuitOpen, .retriedBeneath: true
        case .attemptsExhausted, .deadline: count > 1
        default: false
        }
    }
}
