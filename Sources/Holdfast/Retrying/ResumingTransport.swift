// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastSemantics
internal import HoldfastStorage
private import Synchronization

#if canImport(FoundationNetworking)
    internal import Foundation
    public import FoundationNetworking
#else
    public import Foundation
#endif

/// A transport around another one that resumes a response body whose connection broke, with Range and If-Range.
///
/// The reader sees one 200, and bytes that all belong to one representation: the rest is requested only if the response has a
/// strong ETag, and used only from a 206 with the same ETag that continues it exactly, to the end (`ResumePlan`; RFC 9110
/// §13.1.5, §14.4). The request must be a GET without a Range of its own, and its content coding must not have been decoded. If
/// the rest is not available, the body ends with the original failure.
///
/// Between resumes it waits for the backoff of the rules, on the call's clock, within the same ``ByteSource/next()``. Each
/// resume counts against the budget that retries share, does not begin while the origin's gate is closed, and has
/// `RetryRules.attemptTimeout`, or 60 s, up to its head, because the call's own deadline ended with the first head. Cancelling
/// the reader or the body ends a wait and an exchange in progress. Calls that switch retries off with their own rules
/// (``CallOptions/retryRules``, ``CallOptions/retrierFactory``), or say that they must not be repeated, are not resumed.
///
/// `RetryRules.resumesBodies` puts one around a pipeline's transport. Safe to use from any number of tasks; costs two
/// allocations for each response that could be resumed.
public struct ResumingTransport: WrappingTransport {
    package let transport: any Transport
    private let maxResumes: Int
    private let governor: RetryGovernor?

    /// A transport whose response bodies are resumed.
    ///
    /// - Parameters:
    ///   - transport: sends the request and the requests that resume its response.
    ///   - maxResumes: the most resumes of one body in all, up to 100; 3 by default, 0 or less turns resuming off.
    ///   - governor: the retrier factory's, for its rules and budgets; nil: the default rules, and no budget.
    public init(_ transport: any Transport, maxResumes: Int = 3, governor: RetryGovernor? = nil) {
        self.transport = transport
        self.maxResumes = maxResumes
        self.governor = governor
    }

    public func send(_ request: URLRequest, body: RequestBody, context: CallContext) async throws -> Response {
        var response = try await transport.send(request, body: body, context: context)
        guard let source = response.body.source, response.status == .ok, body.isReplayable,
            context.options.allowsResumes
        else { return response }
        let fields = transport.implicitFields(for: request, context: context)
            .merging(HeaderFields(request.allHTTPHeaderFields ?? [:]))
        guard
            let plan = ResumePlan(
                response.head,
                method: context.method(of: request),
                fields: fields,
                contentDecoded: response.contentDecoded,
                maxResumes: maxResumes
            )
        else { return response }
        let resumption = Resumption(
            transport: transport,
            governor: governor,
            request: request,
            body: body,
            asksIdentity: !fields.contains("Accept-Encoding") && !response.fields.contains(.contentEncoding),
            context: context
        )
        response.body = ResponseBody(
            ResumingBody(source, plan: plan, resumption: resumption),
            length: response.body.length
        )
        return response
    }
}

extension CallOptions {
    /// Whether the call's own options allow its body to be resumed; if they say nothing, the transport decides.
    fileprivate var allowsResumes: Bool {
        if isIdempotent == false { return false }
        if let retryRules { return retryRules.allowsResumes }
        if let retrierFactory { return retrierFactory.governor?.rules.allowsResumes ?? false }
        return true
    }
}

extension RetryRules {
    /// Whether bodies are resumed; with one attempt, nothing is sent twice.
    var allowsResumes: Bool { resumesBodies && maxAttempts > 1 }
}

/// A body from the network that is resumed if its connection breaks.
final class ResumingBody: ByteSource {
    private struct State {
        var source: any ByteSource
        var plan: ResumePlan
        /// The body's first failure; thrown if it cannot be resumed.
        var original: (any Error)?
        var isOver = false
        var isCancelled = false
        /// The resume in progress.
        var resuming: Task<Resumption.Result, any Error>?
    }

    private let resumption: Resumption
    private let state: Mutex<State>
    private let reading = OneReader()

    init(_ source: any ByteSource, plan: ResumePlan, resumption: Resumption) {
        self.resumption = resumption
        state = Mutex(State(source: source, plan: plan))
    }

    func next() async throws -> ByteChunk? {
        try reading.begin()
        defer { reading.end() }
        let source = try state.withLock { state in
            if state.isCancelled { throw CancellationError() }
            if state.isOver, let original = state.original { throw original }
            return state.source
        }
        do {
            let chunk = try await source.next()
            if let chunk { state.withLock { $0.plan.received(chunk.count) } }
            return chunk
        } catch {
            if error.isCancellation { throw error }
            source.cancel()
            return try await rest(after: error)
        }
    }

    /// The first bytes after the break.
    private func rest(after failure: any Error) async throws -> ByteChunk {
        try Task.checkCancellation()
        let (plan, original) = try state.withLock { state in
            if state.isCancelled { throw CancellationError() }
            let original = state.original ?? failure
            state.original = original
            return (state.plan, original)
        }
        guard ResumePlan.cures(ServiceError.attemptFailure(of: failure)) else { throw over(original) }
        // Its own task, so that cancelling the body ends it, just as cancelling the reader does.
        let resuming = Task { [resumption] in try await resumption.run(plan) }
        let isCancelled = state.withLock { state in
            state.resuming = resuming
            return state.isCancelled
        }
        if isCancelled { resuming.cancel() }
        let result = try await withTaskCancellationHandler {
            try await resuming.value
        } onCancel: {
            resuming.cancel()
        }
        guard case .resumed(let source, let first, let newPlan) = result else { throw over(original) }
        let isOver = state.withLock { state in
            state.resuming = nil
            state.source = source
            state.plan = newPlan
            return state.isCancelled
        }
        if isOver {
            source.cancel()
            throw CancellationError()
        }
        return first
    }

    private func over(_ original: any Error) -> any Error {
        state.withLock { state in
            state.resuming = nil
            state.isOver = true
            return state.isCancelled ? CancellationError() : original
        }
    }

    func cancel() {
        let (source, resuming) = state.withLock { state in
            state.isCancelled = true
            return (state.source, state.resuming)
        }
        resuming?.cancel()
        source.cancel()
    }
}

/// Requests the rest of a body until its first bytes have arrived, or no further try is allowed.
struct Resumption: Sendable {
    let transport: any Transport
    let governor: RetryGovernor?
    let request: URLRequest
    let body: RequestBody
    /// Whether the content came without a coding although that was not requested, so that it must be requested now.
    let asksIdentity: Bool
    let context: CallContext

    /// The result of all tries.
    enum Result: Sendable {
        /// The rest consists of these bytes and then the source's; the plan has counted both.
        case resumed(any ByteSource, first: ByteChunk, ResumePlan)
        case failed
    }

    /// The result of one resume.
    private enum Step {
        case resumed(any ByteSource, first: ByteChunk)
        case passing
        case final
    }

    private var rules: RetryRules { governor?.rules ?? .default }
    private var clock: any HoldfastClock { context.clock }

    /// Resumes after each wait of the plan.
    ///
    /// - Throws: `CancellationError` promptly if the task is cancelled, and nothing else.
    func run(_ plan: ResumePlan) async throws -> Result {
        var plan = plan
        let account = governor?.account(for: request, now: clock.now)
        while let delay = nextResume(&plan) {
            guard account?.isClosed(for: request, now: clock.now) != true,
                var payment = ResumePayment(account, rules: rules, after: delay, context: context)
            else { return .failed }
            // Whatever ends the resume, including cancellation during the wait, an unused grant is returned.
            defer { payment.giveBack(now: clock.now) }
            if delay > .zero { try await clock.sleep(until: clock.now.advanced(by: delay)) }
            // The gate may have closed meanwhile, and then the server asked for less. The pace last: it counts a resume.
            guard account?.isClosed(for: request, now: clock.now) != true,
                try await payment.isPermitted(rules, context: context), account?.pace(now: clock.now) == nil
            else { return .failed }
            switch try await resume(&plan, payment: &payment) {
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
        let shared: (any RandomNumberGenerator)? = governor?.generator
        var generator = shared ?? SystemRandomNumberGenerator()
        return plan.nextResume(rules.backoff, using: &generator)
    }

    private func resume(_ plan: inout ResumePlan, payment: inout ResumePayment) async throws -> Step {
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
            // A resume has succeeded once bytes arrive: otherwise a server that sends only heads could be asked any number of times
            // for free.
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
            // Code that cancelled does not have this source yet.
            source.cancel()
            throw error
        }
    }

    private func send(_ plan: ResumePlan) async throws -> Response {
        let limit = rules.attemptTimeout ?? context.timeLimits.attemptTimeout
        let deadline = clock.now.advanced(by: limit ?? .seconds(60))
        var context = context
        // The caller's waiting ended with the head, and its limits do not apply to the rest.
        (context.fetch, context.conditions, context.verdict, context.deadline) = (nil, nil, nil, nil)
        (context.attemptDeadline, context.attemptIsCut) = (deadline, false)
        context.options.acceptance = nil
        let request = request(for: plan)
        guard !transport.enforcesDeadline else {
            return try await transport.send(request, body: body, context: context)
        }
        let sent = context
        return try await withDeadline(
            deadline,
            on: clock,
            failure: sent.attemptTimeout(progress: .bodySent),
            discard: { $0.body.discard() }
        ) {
            try await transport.send(request, body: body, context: sent)
        }
    }

    /// The same request for the rest of the content, without the conditions that the first response has already answered.
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

/// The grant for one resume: settled or returned exactly once, whatever happens.
private struct ResumePayment {
    private let account: RetryAccount?
    private let traffic: RetryAccount.Traffic
    private var grant: RetryGrant?

    /// Plans a resume that is due after `delay`; nil if the budget is used up. Without an account, it costs nothing.
    init?(_ account: RetryAccount?, rules: RetryRules, after delay: Duration, context: CallContext) {
        self.account = account
        traffic = context.isBackground ? .background : .caller
        let now = context.clock.now
        switch account?.plan(.transient, after: delay, rules: rules, traffic: traffic, now: now) {
        case nil, .asks: break
        case .granted(let granted): grant = granted
        case .refused: return nil
        }
    }

    /// Waits until a resume that is due may be sent; returns whether it may.
    mutating func isPermitted(_ rules: RetryRules, context: CallContext) async throws -> Bool {
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

    /// Records how the resume ended; only the first call counts.
    mutating func ended(succeeded: Bool, now: MonotonicInstant) {
        guard let grant = grant.take() else { return }
        account?.ended(grant, succeeded: succeeded, traffic: traffic, now: now)
    }

    /// Returns the grant of a resume that was not sent, or whose end says nothing.
    mutating func giveBack(now: MonotonicInstant) {
        guard let grant = grant.take() else { return }
        account?.giveBack(grant, traffic: traffic, now: now)
    }
}
