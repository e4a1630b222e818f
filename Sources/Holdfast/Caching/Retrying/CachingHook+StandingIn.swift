// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import HoldfastSemantics

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// What answers a call whose exchange failed for good: something stale where that is allowed, and a 504 where it is forbidden.
extension CachingHook {
    /// What is stale, where it may stand in for this reason.
    func held(_ need: Need, _ reason: CacheReason, _ context: CallContext) async -> HeldResponse? {
        let isAllowed = reason == .staleIfError ? need.staleAllowance.onError : need.staleAllowance.whenDisconnected
        guard isAllowed, let candidate = need.standIn else { return nil }
        if let held = need.heldStandIn { return held }
        return await hold(candidate, context)
    }

    /// How long the call waits for the origin while something stale is at hand; nil: as long as it takes.
    func patience(_ need: Need) -> Duration? {
        need.lookup.directive.staleAfter ?? cache.options.staleAfter
    }

    /// The stale response in the place of one that says it failed.
    ///
    /// Where there was no time for the wait before the next attempt, that wait would have outlasted any patience as well.
    func standIn(for answer: Response, _ need: Need, _ context: CallContext) async -> Response? {
        var reason: CacheReason?
        if answer.status.isOriginError, need.staleAllowance.onError {
            reason = .staleIfError
        } else if answer.status.isOriginError || answer.status == .tooManyRequests,
            answer.attempts.last?.stopReason?.isForLackOfTime ?? false, patience(need) != nil
        {
            reason = .patience
        }
        guard let reason, let held = await held(need, reason, context) else { return nil }
        var response = answerHit(held, to: need.lookup, need.request, reason, .error, context)
        response.cacheDecision?.originStatus = answer.status
        return response
    }

    /// The answer in the place of a failure, or of a response that did not come in time; nil: the failure is told.
    ///
    /// - Parameter wasSent: whether anything was; a fault of this side is no reason to hide it behind something stored.
    func answer(
        after error: any Error,
        wasSent: Bool,
        _ need: Need,
        _ context: CallContext
    ) async -> Response? {
        guard !error.isCancellation else { return nil }
        let failure = ServiceError.attemptFailure(of: error)
        guard wasSent || failure.kind == .throttled else { return nil }
        // A response came and was refused: nothing stored is better news than that.
        if context.options.acceptance?.judgesAttempts ?? false, context.exchange?.responseTime != nil,
            failure.kind != .throttled
        {
            return nil
        }
        let isImpatient = patience(need) != nil
        if let reason = need.staleAllowance.reason(after: failure, isImpatient: isImpatient),
            let held = await held(need, reason, context)
        {
            return answerHit(held, to: need.lookup, need.request, reason, .error, context)
        }
        // With a lifetime of the cache's own what the response demands is not what counts, and the failure tells more.
        guard failure.isDisconnection, cache.options.fixedLifetime == nil, let stored = need.standIn?.stored,
            stored.forbidsStale(cache.options)
        else { return nil }
        return gatewayTimeout(after: error, need, context)
    }

    /// The error response of a cache that is disconnected and holds what it must not use (RFC 9111 §5.2.2.2).
    private func gatewayTimeout(after error: any Error, _ need: Need, _ context: CallContext) -> Response {
        let decision = CacheDecision(.unsatisfiable, .mustValidate)
        need.lookup.tally.count(decision) { $0.misses += 1 }
        explain(decision, context)
        var response = Response(status: .gatewayTimeout, url: need.request.url, source: .synthesized)
        response.cacheDecision = decision
        response.attempts = (error as? ServiceError)?.attempts ?? []
        return response
    }
}

extension StopReason {
    /// Whether another attempt would have been made had there been time to wait for it.
    fileprivate var isForLackOfTime: Bool {
        self == .serverDelayTooLong || self == .deadline || self == .gateClosed
    }
}
