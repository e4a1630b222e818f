// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import HoldfastSemantics

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// What answers a call whose exchange failed for good: a stale response if allowed, or a 504 if that is forbidden.
extension CachingHook {
    /// The stale response, if it may be served for this reason.
    func loaded(_ fetchRequest: FetchRequest, reason: CacheReason, context: CallContext) async -> LoadedResponse? {
        let isAllowed =
            reason == .staleIfError ? fetchRequest.staleAllowance.onError : fetchRequest.staleAllowance.whenDisconnected
        guard isAllowed, let candidate = fetchRequest.staleCandidate else { return nil }
        if let loaded = fetchRequest.loadedStale { return loaded }
        return await load(candidate, context: context)
    }

    /// How long the call waits for the origin if there is something stale to serve; nil: as long as it takes.
    func patience(_ fetchRequest: FetchRequest) -> Duration? {
        fetchRequest.lookup.directive.serveStaleAfter ?? cache.options.serveStaleAfter
    }

    /// The stale response in place of a response that reports a failure.
    ///
    /// If there was no time for the wait before the next attempt, that wait would have exceeded any patience too.
    func staleAnswer(insteadOf answer: Response, fetchRequest: FetchRequest, context: CallContext) async -> Response? {
        var reason: CacheReason?
        if answer.status.isOriginError, fetchRequest.staleAllowance.onError {
            reason = .staleIfError
        } else if answer.status.isOriginError || answer.status == .tooManyRequests,
            answer.attempts.last?.stopReason?.isForLackOfTime ?? false, patience(fetchRequest) != nil
        {
            reason = .patience
        }
        guard let reason, let loaded = await loaded(fetchRequest, reason: reason, context: context) else { return nil }
        var response = answerHit(
            loaded,
            to: fetchRequest.lookup,
            request: fetchRequest.request,
            reason: reason,
            kind: .onError,
            context: context
        )
        response.cacheDecision?.originStatus = answer.status
        return response
    }

    /// The answer in place of a failure, or of a response that did not arrive in time; nil: the failure is reported.
    ///
    /// - Parameter wasSent: whether anything was sent; a local error must not be hidden behind a stored response.
    func answer(
        after error: any Error,
        wasSent: Bool,
        fetchRequest: FetchRequest,
        context: CallContext
    ) async -> Response? {
        guard !error.isCancellation else { return nil }
        let failure = ServiceError.attemptFailure(of: error)
        guard wasSent || failure.kind == .throttled else { return nil }
        // A response arrived and was rejected: a stored one is no better.
        if context.options.acceptance?.judgesAttempts ?? false, context.exchange?.responseTime != nil,
            failure.kind != .throttled
        {
            return nil
        }
        let isImpatient = patience(fetchRequest) != nil
        if let reason = fetchRequest.staleAllowance.reason(after: failure, isImpatient: isImpatient),
            let loaded = await loaded(fetchRequest, reason: reason, context: context)
        {
            return answerHit(
                loaded,
                to: fetchRequest.lookup,
                request: fetchRequest.request,
                reason: reason,
                kind: .onError,
                context: context
            )
        }
        // With a fixed lifetime, the response's own directives do not count, and the failure says more.
        guard failure.isDisconnection, let stored = fetchRequest.staleCandidate?.stored,
            !stored.hasFixedLifetime(cache.options), stored.forbidsStale(cache.options)
        else { return nil }
        return gatewayTimeout(after: error, fetchRequest: fetchRequest, context: context)
    }

    /// The error response of a cache that is disconnected and has something stored that it must not use (RFC 9111 §5.2.2.2).
    private func gatewayTimeout(after error: any Error, fetchRequest: FetchRequest, context: CallContext) -> Response {
        let decision = CacheDecision(.unsatisfiable, reason: .mustValidate)
        fetchRequest.lookup.metrics.count(decision) { $0.misses += 1 }
        explain(decision, context: context)
        var response = Response(status: .gatewayTimeout, url: fetchRequest.request.url, source: .synthesized)
        response.cacheDecision = decision
        response.attempts = (error as? ServiceError)?.attempts ?? []
        return response
    }
}

extension StopReason {
    /// Whether another attempt would have been made if there had been time to wait for it.
    fileprivate var isForLackOfTime: Bool {
        self == .serverDelayTooLong || self == .deadline || self == .gateClosed
    }
}
