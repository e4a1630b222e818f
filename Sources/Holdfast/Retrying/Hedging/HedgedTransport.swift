// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import HoldfastSemantics

#if canImport(FoundationNetworking)
    internal import Foundation
    public import FoundationNetworking
#else
    public import Foundation
#endif

/// Sends a second copy of a request whose answer is late, and takes the answer that comes first: a transport around another.
///
/// Late is what exceeds a percentile of the latest answers of the origin (`HedgeRules`), so nothing is hedged before
/// enough of them were measured. Only requests that may be sent twice by the rules of retrying are: an idempotent method, an
/// Idempotency-Key or the call's word (for a gateway the method alone), content that can be replayed, no tunnel and no upgrade;
/// never for calls in the background, for calls whose own rules have one attempt or no hedging, and never while the origin's
/// gate is closed. The copies are the same request, its Idempotency-Key included. The first response head that is no reason to retry
/// wins; the others are cancelled and their bodies discarded, and nobody waits for them. A failure before any copy was sent
/// goes up at once: sending again is then the retrier's business.
///
/// Each copy is paid for out of `HedgeRules.maxExtraLoad` and, with a governor, out of the budget that retries share.
/// Hedging stops by itself while everything is slow or many attempts fail. While a request may be hedged it costs two tasks;
/// before enough was measured, and for requests that may not be, none. A response that was hedged bears in
/// ``Response/attempts`` one record a copy, and in ``Response/requestTime`` when the copy was sent that answered.
/// 256 origins are remembered; those longest unused go first. Safe to use from any number of tasks.
public final class HedgedTransport: Transport {
    private let transport: any Transport
    private let rules: HedgeRules
    private let governor: RetryGovernor?
    private let origins: OriginTable<HedgePace>

    /// A hedging transport around another one.
    ///
    /// - Parameters:
    ///   - transport: sends the request and its copies.
    ///   - rules: when copies are sent, and how many.
    ///   - governor: the retrier factory's, so that hedges are paid for out of the same budget as retries; nil: only
    ///     `HedgeRules.maxExtraLoad` bounds them.
    public init(_ transport: any Transport, rules: HedgeRules = HedgeRules(), governor: RetryGovernor? = nil) {
        self.transport = transport
        self.rules = rules
        self.governor = governor
        origins = OriginTable(capacity: 256) { HedgePace(rules, now: $0) }
    }

    public var enforcesDeadline: Bool { transport.enforcesDeadline }

    public func implicitFields(for request: URLRequest) -> HeaderFields {
        transport.implicitFields(for: request)
    }

    public func implicitFields(for request: URLRequest, context: CallContext) -> HeaderFields {
        transport.implicitFields(for: request, context: context)
    }

    public func send(_ request: URLRequest, body: RequestBody, context: CallContext) async throws -> Response {
        let rulesInForce = rulesInForce(context)
        guard !context.isBackground, HedgeJudge.permitsCopy(of: request, body, by: rulesInForce, context),
            !isSwitchedOff(by: context.options)
        else {
            return try await transport.send(request, body: body, context: context)
        }
        let start = context.clock.now
        let account = governor?.account(for: request, now: start)
        let pace = origins.cell(of: OriginText(request), now: start)
        let judge = HedgeJudge(request: request, context: context, rules: rulesInForce)
        guard let delay = pace.attemptBegan(now: start), account?.isClosed(for: request, now: start) != true,
            context.attemptDeadline.map({ start.advanced(by: delay) < $0 }) ?? true
        else { return try await sendOnce(request, body, context, pace, judge, start: start) }
        let race = HedgeRace(
            transport: transport,
            request: request,
            body: body,
            context: context,
            judge: judge,
            pace: pace,
            account: account,
            plan: HedgePlan(delay: delay, maxCopies: rules.maxCopies, start: start.sinceOrigin)
        )
        return try await race.run()
    }

    private func sendOnce(
        _ request: URLRequest,
        _ body: RequestBody,
        _ context: CallContext,
        _ pace: HedgePace,
        _ judge: HedgeJudge,
        start: MonotonicInstant
    ) async throws -> Response {
        let result: Result<Response, any Error>
        do {
            result = .success(try await transport.send(request, body: body, context: context))
        } catch {
            result = .failure(error)
        }
        let end = context.clock.now
        if let succeeded = judge.succeeded(result) {
            pace.attemptEnded(length: start.duration(to: end), succeeded: succeeded, wasLate: false, now: end)
        }
        return try result.get()
    }

    /// The call's own rules or the governor's; a gateway stays one whatever the call says.
    private func rulesInForce(_ context: CallContext) -> RetryRules {
        let shared = governor?.rules ?? .default
        guard var own = context.options.retryRules else { return shared }
        if shared.isGateway { own.isGateway = true }
        return own
    }

    /// Who wants a single attempt wants a single copy.
    private func isSwitchedOff(by options: CallOptions) -> Bool {
        options.retryRules.map { $0.maxAttempts <= 1 || $0.hedging == nil } ?? false
    }
}
