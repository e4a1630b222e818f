// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import HoldfastSemantics
private import Synchronization

#if canImport(FoundationNetworking)
    internal import Foundation
    public import FoundationNetworking
#else
    public import Foundation
#endif

/// A transport around another one that sends a second copy of a request whose response is late, and uses the first response.
///
/// A response is late if it exceeds a percentile of the origin's latest response times (`HedgeRules`), so nothing is hedged
/// before enough of them have been measured. Only requests that the retry rules allow to be sent twice are hedged: those with
/// an idempotent method, an Idempotency-Key or `isIdempotent` (for a gateway, only the method counts) and with content that can
/// be replayed, except tunnels and upgrades. Background calls, and calls whose own rules, or own factory, have one attempt or no
/// hedging, are never hedged, nor is anything while the origin's gate is closed. The copies are the same request, including its
/// Idempotency-Key; only the time left (`RetryRules.timeLeftField`) is that of each copy. The first response head that is not a
/// reason to retry wins; the others are cancelled without waiting, and their bodies discarded. An error never wins against a copy
/// in flight. A failure before any copy was sent is thrown at once, and left to the retrier.
///
/// Each copy counts against `HedgeRules.maxExtraLoad` and, with a governor, costs the budget that retries share as much as a retry,
/// whatever copy wins: the pool, for one, loses a token only if the copy fails. Hedging stops by itself while everything is
/// slow or many attempts fail. A request that may be hedged costs two tasks; others, and those before enough was measured, cost
/// none. In a hedged response, ``Response/attempts`` has one record for each copy, and
/// ``Response/requestTime`` is when the copy that answered was sent. 256 origins are remembered; the least recently used are
/// forgotten first. Safe to use from any number of tasks.
public final class HedgedTransport: WrappingTransport {
    package let transport: any Transport
    private let rules: HedgeRules
    private let governor: RetryGovernor?
    private let origins: OriginTable<HedgePace>

    /// A hedging transport around another one.
    ///
    /// - Parameters:
    ///   - transport: sends the request and its copies.
    ///   - rules: when copies are sent, and how many.
    ///   - governor: the retrier factory's, so that hedges use the same budget as retries; nil: only `HedgeRules.maxExtraLoad`
    ///     limits them.
    public init(_ transport: any Transport, rules: HedgeRules = HedgeRules(), governor: RetryGovernor? = nil) {
        self.transport = transport
        self.rules = rules
        self.governor = governor
        origins = OriginTable(capacity: 256) { HedgePace(rules, now: $0) }
    }

    public func send(_ request: URLRequest, body: RequestBody, context: CallContext) async throws -> Response {
        let evaluator = HedgeEvaluator(request: request, context: context, rules: rulesInForce(context))
        guard !context.isBackground, evaluator.permitsCopy(with: body), !isSwitchedOff(by: context.options) else {
            return try await transport.send(request, body: body, context: context)
        }
        let start = context.clock.now
        let account = governor?.account(for: request, now: start)
        let pace = origins.cell(of: OriginText(request), now: start)
        guard let delay = pace.state.withLock({ $0.attemptBegan(now: start.sinceOrigin) }),
            account?.isClosed(for: request, now: start) != true,
            context.attemptDeadline.map({ start.advanced(by: delay) < $0 }) ?? true
        else {
            let result = await transport.result(of: request, body: body, context: context)
            let end = context.clock.now
            if let succeeded = evaluator.succeeded(result) {
                pace.attemptEnded(length: start.duration(to: end), succeeded: succeeded, wasLate: false, now: end)
            }
            return try result.get()
        }
        let race = HedgeRace(
            transport: transport,
            request: request,
            body: body,
            context: context,
            evaluator: evaluator,
            pace: pace,
            account: account,
            plan: HedgePlan(delay: delay, maxCopies: rules.maxCopies, start: start.sinceOrigin)
        )
        return try await race.run()
    }

    /// The call's own rules, those of its own factory or the governor's; a gateway stays one whatever the call says.
    private func rulesInForce(_ context: CallContext) -> RetryRules {
        let shared = governor?.rules ?? .default
        let options = context.options
        guard var own = options.retryRules ?? options.retrierFactory?.governor?.rules else { return shared }
        if shared.isGateway { own.isGateway = true }
        return own
    }

    /// A call that wants a single attempt wants a single copy.
    private func isSwitchedOff(by options: CallOptions) -> Bool {
        if options.retryRules == nil, options.retrierFactory == nil { return false }
        // A factory without rules, such as `.never`, asks for no copies.
        guard let own = options.retryRules ?? options.retrierFactory?.governor?.rules else { return true }
        return own.maxAttempts <= 1 || own.hedging == nil
    }
}

/// One request and its copies, the first good one of which wins; driven by the caller's own task.
///
/// Copies run in their own tasks, so that one that ignores its cancellation delays neither the winner nor the caller; its late
/// result is discarded.
struct HedgeRace {
    let transport: any Transport
    let request: URLRequest
    let body: RequestBody
    let context: CallContext
    let evaluator: HedgeEvaluator
    let pace: HedgePace
    let account: RetryAccount?
    var plan: HedgePlan

    /// One copy: what it cost, and how it ended.
    private struct Copy {
        let task: Task<Void, Never>
        let start: MonotonicInstant
        let sentAt: Timestamp
        var grant: RetryGrant?
        var end: MonotonicInstant?
        var status: StatusCode?
        var errorCode: ServiceError.Code?
    }

    /// An event of the race, for the one task that waits for them.
    private enum Message: Sendable {
        /// A copy ended.
        case ended(copy: Int, Result<Response, any Error>, at: MonotonicInstant)
        /// The next copy is due.
        case due

        /// Discards a response that nobody will read.
        func discard() {
            if case .ended(_, .success(let response), _) = self { response.body.discard() }
        }
    }

    private typealias Mailbox = AsyncStream<Message>.Continuation

    /// The state of the race.
    private struct Course {
        var plan: HedgePlan
        var copies: [Copy] = []
        var timer: Task<Void, Never>?
        var wasLate = false
        var firstSucceeded: Bool?
        /// The failed response that asks for the longest pause, and the number of its copy.
        var asked: (number: Int, response: Response, pause: Duration)?
    }

    func run() async throws -> Response {
        try Task.checkCancellation()
        let (messages, mailbox) = AsyncStream.makeStream(of: Message.self)
        var course = Course(plan: plan)
        let result = await run(&course, messages: messages, mailbox: mailbox)
        course.timer?.cancel()
        mailbox.finish()
        for copy in course.copies { copy.task.cancel() }
        settle(&course, result: result)
        course.asked?.response.body.discard()
        for await message in messages { message.discard() }
        return try finished(result, course: course)
    }

    private func run(
        _ course: inout Course,
        messages: AsyncStream<Message>,
        mailbox: Mailbox
    ) async -> Result<Response, any Error> {
        launch(&course, mailbox: mailbox, grant: nil)
        // Cancellation ends the stream, and overtakes what has already arrived.
        for await message in messages {
            if Task.isCancelled {
                message.discard()
                break
            }
            switch message {
            case .due:
                hedge(&course, mailbox: mailbox)
            case .ended(let number, let result, let end):
                close(number, result: result, end: end, course: &course)
                guard case .fails(let pushback, let forbidsRetry) = evaluator.verdict(on: result) else {
                    return stamped(result, number: number, course: course)
                }
                course.plan.copyFailed(pushback: pushback, now: end.sinceOrigin)
                // A server that forbids a retry asks for more than any pause.
                let pause: Duration? = forbidsRetry ? .seconds(Int64.max) : pushback
                if course.plan.inFlight == 0 {
                    // What the server asked for counts, although another copy failed later and was told nothing.
                    guard let asked = course.asked, asked.pause > pause ?? .zero else {
                        return stamped(result, number: number, course: course)
                    }
                    course.asked = nil
                    message.discard()
                    return stamped(.success(asked.response), number: asked.number, course: course)
                }
                keep(result, number: number, pause: pause, course: &course)
                setTimer(&course, mailbox: mailbox)
            }
        }
        return .failure(CancellationError())
    }

    /// Keeps a failed response that asks for a pause, in case no copy does better; drops any other.
    private func keep(
        _ result: Result<Response, any Error>,
        number: Int,
        pause: Duration?,
        course: inout Course
    ) {
        guard case .success(var response) = result else { return }
        guard let pause, pause > course.asked?.pause ?? .zero else { return response.body.discard() }
        course.asked?.response.body.discard()
        // The other copies may need its connection, or its place among the exchanges.
        context.detach(&response)
        course.asked = (number, response, pause)
    }

    /// Sends a copy, and schedules the next.
    private func launch(_ course: inout Course, mailbox: Mailbox, grant: RetryGrant?) {
        let number = course.copies.count
        let now = context.clock.now
        var request = request
        if number > 0 { context.renewTimeLeft(in: &request) }
        let task = context.background.start { [transport, request, body, context] in
            let result = await transport.result(of: request, body: body, context: context)
            // The first copy is the attempt itself, whose end is reported by the loop.
            if number > 0 { context.tellEnd(ofCopy: result, since: now) }
            let message = Message.ended(copy: number, result, at: context.clock.now)
            if case .terminated = mailbox.yield(message) { message.discard() }
        }
        course.copies.append(Copy(task: task, start: now, sentAt: context.clock.timestamp, grant: grant))
        course.plan.copySent(now: now.sinceOrigin)
        setTimer(&course, mailbox: mailbox)
    }

    /// Sends the copy that is due, if it is allowed and the budget permits it.
    private func hedge(_ course: inout Course, mailbox: Mailbox) {
        let now = context.clock.now
        guard let due = course.plan.nextSend, due <= now.sinceOrigin else { return setTimer(&course, mailbox: mailbox) }
        let isFirst = !course.wasLate
        course.wasLate = true
        guard pace.state.withLock({ $0.permitHedge(isFirst: isFirst) }) else { return course.plan.stop() }
        // A copy in flight may have read more of the content than is kept for another.
        guard body.isReplayable else {
            pace.state.withLock { $0.giveBack() }
            return course.plan.stop()
        }
        var grant: RetryGrant?
        if let account {
            // What was taken above is returned if this refuses, so that neither balance ever leaks.
            guard !account.isClosed(for: request, now: now), let granted = account.permitHedge(now: now) else {
                pace.state.withLock { $0.giveBack() }
                return course.plan.stop()
            }
            grant = granted
        }
        context.emit(.hedgeStarted) { event in
            event.attempt = context.attempt
            event.delay = course.copies.first?.start.duration(to: now)
        }
        launch(&course, mailbox: mailbox, grant: grant)
    }

    private func setTimer(_ course: inout Course, mailbox: Mailbox) {
        course.timer?.cancel()
        course.timer = nil
        guard let due = course.plan.nextSend.map(MonotonicInstant.init(sinceOrigin:)) else { return }
        // A copy that would be due after the deadline is not worth a timer.
        if let deadline = context.attemptDeadline, deadline <= due { return course.plan.stop() }
        guard due > context.clock.now else {
            mailbox.yield(.due)
            return
        }
        course.timer = context.background.start { [context] in
            do {
                try await context.clock.sleep(until: due)
                mailbox.yield(.due)
            } catch {
                // The timer was cancelled: another one runs, or the race is over.
            }
        }
    }

    private func close(
        _ number: Int,
        result: Result<Response, any Error>,
        end: MonotonicInstant,
        course: inout Course
    ) {
        course.copies[number].end = end
        switch result {
        case .success(let response): course.copies[number].status = response.status
        case .failure(let error): course.copies[number].errorCode = (error as? ServiceError)?.code ?? .other
        }
        let succeeded = evaluator.succeeded(result)
        if number == 0 { course.firstSucceeded = succeeded }
        settle(&course.copies[number].grant, succeeded: succeeded, now: end)
    }

    /// Settles what a copy took from the budget, at most once: it is returned if the copy's end says nothing about the server.
    private func settle(_ grant: inout RetryGrant?, succeeded: Bool?, now: MonotonicInstant) {
        guard let taken = grant.take() else { return }
        if let succeeded {
            account?.ended(taken, succeeded: succeeded, now: now)
        } else {
            account?.giveBack(taken, now: now)
        }
    }

    /// Measures the first copy, and settles the grants of those that have not ended.
    private func settle(_ course: inout Course, result: Result<Response, any Error>) {
        let now = context.clock.now
        let succeeded = evaluator.succeeded(result)
        for index in course.copies.indices { settle(&course.copies[index].grant, succeeded: succeeded, now: now) }
        guard let first = course.copies.first else { return }
        guard let firstSucceeded = first.end == nil ? succeeded : course.firstSucceeded else { return }
        let end = first.end ?? now
        let length = first.start.duration(to: end)
        pace.attemptEnded(length: length, succeeded: firstSucceeded, wasLate: course.wasLate, now: end)
    }

    /// The result of a copy with the time at which that copy was sent, which its Age is calculated from (RFC 9111 §4.2.3).
    private func stamped(
        _ result: Result<Response, any Error>,
        number: Int,
        course: Course
    ) -> Result<Response, any Error> {
        guard case .success(var response) = result else { return result }
        response.requestTime = course.copies[number].sentAt
        return .success(response)
    }

    private func finished(_ result: Result<Response, any Error>, course: Course) throws -> Response {
        guard course.copies.count > 1 else { return try result.get() }
        let now = context.clock.now
        let records = course.copies.enumerated().map { index, copy in
            AttemptRecord(
                number: index + 1,
                start: copy.start,
                end: copy.end ?? now,
                status: copy.status,
                errorCode: copy.errorCode
            )
        }
        switch result {
        case .success(var response):
            response.attempts = records
            return response
        case .failure(var error as ServiceError):
            error.attempts = records
            throw error
        case .failure(let error):
            throw error
        }
    }
}

extension CallContext {
    /// Tells the observers how a further copy ended.
    fileprivate func tellEnd(ofCopy result: Result<Response, any Error>, since start: MonotonicInstant) {
        emit(.hedgeEnded) { event in
            event.attempt = attempt
            event.delay = start.duration(to: clock.now)
            switch result {
            case .success(let response): event.status = response.status
            case .failure(let error): event.describe(error)
            }
        }
    }
}

/// Decides what the end of one copy means for the others.
struct HedgeEvaluator: Sendable {
    let request: URLRequest
    let context: CallContext
    let rules: RetryRules

    /// What follows from the end of a copy.
    enum Verdict {
        /// It is the answer.
        case wins
        /// Another copy may do better; with the time for which the server asks to be left alone, if it does.
        case fails(pushback: Duration?, forbidsRetry: Bool = false)
    }

    func verdict(on result: Result<Response, any Error>) -> Verdict {
        let outcome = AttemptOutcome(result, in: context)
        guard outcome.isFailure else { return .wins }
        let failed = exchange(outcome, bodyIsReplayable: true)
        // For a second copy, this means that the first is being processed (draft-ietf-httpapi-idempotency-key-header §2.6).
        if case .response(let head) = outcome, head.status == .conflict, failed.fields.bearsIdempotencyKey {
            return .fails(pushback: .seconds(-1))
        }
        if case .never = rules.classify(failed) {
            // What fails on this side, such as a body that another copy is reading, says nothing about that copy.
            if case .failure = outcome { return .fails(pushback: .seconds(-1)) }
            return .wins
        }
        let hint = rules.serverHint(failed)
        return .fails(pushback: hint.forbidsRetry ? .seconds(-1) : hint.wait, forbidsRetry: hint.forbidsRetry)
    }

    /// Whether the server responded properly; nil if the attempt's end says nothing about that.
    func succeeded(_ result: Result<Response, any Error>) -> Bool? {
        AttemptOutcome(result, in: context).serverSucceeded
    }

    /// Whether the request may be sent a second time with this content before the first copy's result is known.
    func permitsCopy(with body: RequestBody) -> Bool {
        let unknown = AttemptOutcome.failure(AttemptFailure(kind: .timeout, progress: .bodySent))
        return rules.permitsCopy(of: exchange(unknown, bodyIsReplayable: body.isReplayable))
    }

    private func exchange(_ outcome: AttemptOutcome, bodyIsReplayable: Bool) -> FailedExchange {
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

/// The speed of one origin, and what its hedges may cost.
final class HedgePace: Sendable {
    fileprivate let state: Mutex<HedgeState>

    init(_ rules: HedgeRules, now: MonotonicInstant) {
        state = Mutex(HedgeState(rules, now: now.sinceOrigin))
    }

    func attemptEnded(length: Duration, succeeded: Bool, wasLate: Bool, now: MonotonicInstant) {
        state.withLock {
            $0.attemptEnded(length: length, succeeded: succeeded, wasLate: wasLate, now: now.sinceOrigin)
        }
    }
}
