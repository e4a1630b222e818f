// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastSemantics
internal import HoldfastStorage

#if canImport(FoundationNetworking)
    internal import Foundation
    internal import FoundationNetworking
#else
    internal import Foundation
#endif

/// Asks for the rest of a body until its first bytes are there, or nothing more is to be tried.
struct Resumption: Sendable {
    let transport: any Transport
    let governor: RetryGovernor?
    let request: URLRequest
    let body: RequestBody
    /// Whether the content came as it is without that having been asked for, so that it must be asked for now.
    let asksIdentity: Bool
    let context: CallContext

    /// What came of it.
    enum Result: Sendable {
        /// The rest goes on with these bytes and then the source's; the plan has counted both.
        case resumed(any ByteSource, first: ByteChunk, ResumePlan)
        case failed
    }

    /// What came of one resume.
    private enum Step {
        case resumed(any ByteSource, first: ByteChunk)
        case passing
        case final
    }

    private var rules: RetryRules { governor?.rules ?? .default }
    private var clock: any HoldfastClock { context.clock }

    /// Resumes after each wait of the plan.
    ///
    /// - Throws: `CancellationError` promptly when the task is cancelled, and nothing else.
    func run(_ plan: ResumePlan) async throws -> Result {
        var plan = plan
        let account = governor?.account(for: request, now: clock.now)
        while let delay = nextResume(&plan) {
            guard account?.isClosed(for: request, now: clock.now) != true,
                var payment = ResumePayment(account, rules, after: delay, context)
            else { return .failed }
            // Whatever ends the resume, cancellation in the wait included, what was granted and not used goes back.
            defer { payment.giveBack(now: clock.now) }
            if delay > .zero { try await clock.sleep(until: clock.now.advanced(by: delay)) }
            // The gate may have closed meanwhile, and then the server asked for less.
            guard account?.isClosed(for: request, now: clock.now) != true, account?.pace(now: clock.now) == nil,
                try await payment.isPermitted(rules, context)
            else { return .failed }
            switch try await resume(&plan, &payment) {
            case .passing:
                continue
            case .final:
                return .failed
            case .resumed(let source, let first):
                context.emit(.bodyResumed) { event in
                    event.attempt = context.attempt
                    event.bytes = Int(clamping: plan.offset)
                    event.delay = delay
                }
                plan.received(first.count)
                return .resumed(source, first: first, plan)
            }
        }
        return .failed
    }

    private func nextResume(_ plan: inout ResumePlan) -> Duration? {
        guard let governor else {
            var generator = SystemRandomNumberGenerator()
            return plan.nextResume(rules.backoff, using: &generator)
        }
        var generator = governor.generator
        return plan.nextResume(rules.backoff, using: &generator)
    }

    private func resume(_ plan: inout ResumePlan, _ payment: inout ResumePayment) async throws -> Step {
        do {
            let response = try await send(plan)
            if Task.isCancelled {
                response.body.discard()
                throw CancellationError()
            }
            let verdict = plan.verdict(on: response.head, contentDecoded: response.contentDecoded)
            guard case .rest(let count) = verdict else {
                response.body.discard()
                let succeeded = !AttemptOutcome.response(response.head).isServerTrouble
                payment.ended(succeeded: succeeded, now: clock.now)
                return verdict == .passing ? .passing : .final
            }
            let source = ExactBody(response.body.anySource, count: Int(clamping: count))
            // A resume has succeeded once bytes come: a server that sends only heads would otherwise be asked for free.
            guard let first = try await firstBytes(of: source) else { return .final }
            payment.ended(succeeded: true, now: clock.now)
            return .resumed(source, first: first)
        } catch {
            if error.isCancellation || Task.isCancelled { throw CancellationError() }
            let failure = ServiceError.attemptFailure(of: error)
            if AttemptOutcome.failure(failure).isServerTrouble { payment.ended(succeeded: false, now: clock.now) }
            return ResumePlan.cures(failure) ? .passing : .final
        }
    }

    private func firstBytes(of source: any ByteSource) async throws -> ByteChunk? {
        do {
            return try await source.next()
        } catch {
            // Whoever cancelled has no hand on this source yet.
            source.cancel()
            throw error
        }
    }

    private func send(_ plan: ResumePlan) async throws -> Response {
        let deadline = clock.now.advanced(by: rules.attemptTimeout ?? .seconds(60))
        var context = context
        // What the caller waits for was over with the head, and no limit for that is one for the rest.
        (context.flight, context.validation, context.verdict, context.deadline) = (nil, nil, nil, nil)
        (context.attemptDeadline, context.attemptIsCut) = (deadline, false)
        context.options.acceptance = nil
        let request = request(for: plan)
        guard !transport.enforcesDeadline else {
            return try await transport.send(request, body: body, context: context)
        }
        return try await withDeadline(deadline, on: clock, discard: { $0.body.discard() }) { [context] in
            try await transport.send(request, body: body, context: context)
        }
    }

    /// The same request, asking for the rest; without what was answered by the first response already.
    private func request(for plan: ResumePlan) -> URLRequest {
        var request = request
        var dropped: [FieldName] = [.ifNoneMatch, .ifModifiedSince]
        if let timeLeftField = rules.timeLeftField { dropped.append(timeLeftField) }
        for name in dropped { request.setValue(nil, forHTTPHeaderField: name.rawName) }
        for line in plan.fields { request.setValue(line.value, forHTTPHeaderField: line.name.rawName) }
        if asksIdentity { request.setValue("identity", forHTTPHeaderField: "Accept-Encoding") }
        return request
    }
}

/// What one resume was permitted by: ended or given back exactly once, whatever happens.
private struct ResumePayment {
    private let account: RetryAccount?
    private let traffic: RetryAccount.Traffic
    private var grant: RetryGrant?

    /// Plans a resume that is due after `delay`; nil where the budget is spent. Without an account it costs nothing.
    init?(_ account: RetryAccount?, _ rules: RetryRules, after delay: Duration, _ context: CallContext) {
        self.account = account
        traffic = context.isBackground ? .background : .caller
        let now = context.clock.now
        switch account?.plan(.transient, after: delay, rules: rules, traffic: traffic, now: now) {
        case nil, .asks: break
        case .granted(let granted): grant = granted
        case .refused: return nil
        }
    }

    /// Waits until a resume that is due may be made; whether it may.
    mutating func isPermitted(_ rules: RetryRules, _ context: CallContext) async throws -> Bool {
        guard let account, grant == nil else { return true }
        grant = try await account.permission(
            .transient,
            rules: rules,
            traffic: traffic,
            deadline: nil,
            context: context
        ) { _ in }
        return grant != nil
    }

    /// Takes note of how the resume ended; only the first word counts.
    mutating func ended(succeeded: Bool, now: MonotonicInstant) {
        guard let grant else { return }
        self.grant = nil
        account?.ended(grant, succeeded: succeeded, traffic: traffic, now: now)
    }

    /// Gives back what was granted to a resume that was not made, or whose end says nothing.
    mutating func giveBack(now: MonotonicInstant) {
        guard let grant else { return }
        self.grant = nil
        account?.giveBack(grant, traffic: traffic, now: now)
    }
}
