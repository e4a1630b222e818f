// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastSemantics
internal import HoldfastStorage

#if canImport(FoundationNetworking)
    internal import Foundation
    public import FoundationNetworking
#else
    public import Foundation
#endif

/// Answers from an ``HTTPCache``, asks the origin with conditions, and stores its responses (RFC 9111).
///
/// `Pipeline(cache:)` puts it below all other hooks, where it sees every hop's request as it will be sent. If you list it
/// yourself, put it below any hook that adds credentials: if the request that was sent has another principal than the one that
/// was looked up, nothing is stored.
///
/// A call that is looked up and needs the origin waits for an exchange in a separate task, which equal calls share (collapsed
/// forwarding): the hooks below this one, the attempts and this hook's own ending run there, once for all of them.
public struct CachingHook: ServiceHook {
    /// The cache that this hook reads and writes.
    public let cache: HTTPCache

    /// A hook over `cache`.
    public init(_ cache: HTTPCache) { self.cache = cache }

    public var scope: HookScope { .message }

    public func onSchedule(_ request: inout URLRequest, _ context: inout CallContext) async throws -> Response? {
        var history = LookupHistory(begun: context.clock.now)
        var known = context.takeKnown()
        if known.isEmpty,
            let response = freshAnswer(to: request, history: history, context: &context, known: &known)
        {
            return response
        }
        let asked = request.url
        request.spellTargetAsKeyed(in: context)
        while true {
            var response: Response
            switch try await decide(on: request, history: history, known: &known, context: &context) {
            case .bypass:
                return nil
            case .serve(let stored):
                response = stored
            case .serveAndRefresh(let stored, let fetchRequest):
                // A refused response is removed and requested once more, so its refresh would be a second request for the same.
                if let verdict = context.verdict {
                    await verdict.whenDecided { [self, context] isAccepted in
                        if isAccepted { refresh(fetchRequest, context: context) }
                    }
                } else {
                    refresh(fetchRequest, context: context)
                }
                response = stored
            case .fetch(let fetchRequest):
                switch try await result(of: fetchRequest, context: &context) {
                case .answer(let answer): response = answer
                case .lookAgain(let after):
                    history = after
                    continue
                }
            }
            if response.url == nil { response.url = asked }
            CacheStatusField(cache.options, isStale: response.source == .stale)?
                .append(to: &response, key: context.transaction?.lookup.key)
            return response
        }
    }

    /// What to do about a request.
    private enum Decision {
        /// The request bypasses the cache.
        case bypass
        case serve(Response)
        case serveAndRefresh(Response, FetchRequest)
        /// Asks the origin: with the request as it is, with conditions, or for the missing part.
        case fetch(FetchRequest)
    }

    /// Looks for stored responses, and decides what to do (RFC 9111 §4).
    ///
    /// - Parameter known: what was looked up just now; used up.
    private func decide(
        on request: URLRequest,
        history: LookupHistory,
        known: inout KnownEntries,
        context: inout CallContext
    ) async throws -> Decision {
        guard var lookup = CacheLookup(request, context: context, cache: cache, history: history) else {
            let metrics = CallMetrics(cache.meter, target: nil, history: history, clock: context.clock)
            if history.isFirst { metrics.arrive() }
            return bypass(.target, metrics: metrics, context: context)
        }
        if history.isFirst { lookup.metrics.arrive() }
        if !known.isEmpty { lookup.completions = known.completions }
        if cache.writer.hasPendingInvalidations {
            await cache.writer.waitForInvalidations(of: lookup.key.target)
            known = KnownEntries()
            lookup.generation = cache.generation(of: lookup.key.target)
        }
        var request = request
        // Positions count stored bytes, so there must be no content coding in between (RFC 9110 §14.2). The caller's accepted
        // codings determine the variant, so that a response's parts and its whole are the same one.
        if lookup.isConditionalOrPartial, lookup.head.fields.contains(.range),
            request.field(.acceptEncoding) == nil
        {
            request.setFields([(.acceptEncoding, "identity")])
        }
        // What is stored for a request that it does not answer is still older than the response.
        var stored =
            lookup.bypassReason == nil || lookup.isRetrieval
            ? await candidates(for: lookup, context, known: known) : []
        known = KnownEntries()
        var candidates = lookup.bypassReason == nil ? stored : []
        var hasLookedAgain = false
        while true {
            let reuse = decide(lookup, candidates: candidates, context: context)
            if !reuse.decision.isReuse {
                // Borrowed responses are used only while fresh.
                let count = candidates.count
                candidates.removeAll { !$0.mayBeValidated }
                if candidates.count < count { continue }
                lookup.note(stored, in: cache)
                cache.writer.begin(&lookup.generation, for: lookup.key.target)
            }
            // A call that is answered at once does not end here, so its lookup need not be kept.
            if !reuse.decision.isReuse || cache.options.cacheName != nil {
                context.transaction = CacheTransaction(lookup)
            }
            guard let index = reuse.decision.selectedCandidate else {
                return try withoutStored(
                    reuse,
                    candidates: candidates,
                    request: request,
                    lookup: lookup,
                    context: context
                )
            }
            if let loaded = await load(candidates[index], context: context) {
                return await withStored(
                    loaded,
                    reuse: reuse,
                    candidates: candidates,
                    request: request,
                    lookup: lookup,
                    context: context
                )
            }
            // Replaced or evicted since the lookup, or unreadable: decide again without it.
            if hasLookedAgain {
                candidates.remove(at: index)
            } else {
                hasLookedAgain = true
                stored = await self.candidates(for: lookup, context)
                candidates = stored
            }
        }
    }

    /// The request to the origin for a retry, given what is stored now.
    func decideAgain(on fetchRequest: FetchRequest, context: CallContext) async -> FetchRequest {
        var lookup = fetchRequest.lookup
        // The earlier attempts have no result, and the next one is sent after everything that has happened so far.
        lookup.completions = cache.fetches.completions
        lookup.generation = cache.generation(of: lookup.key.target)
        cache.writer.begin(&lookup.generation, for: lookup.key.target)
        let candidates = await candidates(for: lookup, context).filter(\.mayBeValidated)
        let reuse = decide(lookup, candidates: candidates, context: context)
        var offered: [LoadedResponse] = []
        var completion: Completion?
        if let index = reuse.decision.selectedCandidate,
            let loaded = await load(candidates[index], context: context)
        {
            switch reuse.decision {
            case .complete(_, let missing, let fields):
                // A part that is being removed is not completed.
                if cache.writer.holds(lookup.generation, for: lookup.key.target) {
                    completion = Completion(loaded: loaded, missing: missing, fields: fields)
                }
            case .revalidate(let indices):
                offered = await offer(indices, selected: loaded, candidates: candidates, context: context)
            default:
                offered = await offer([index], selected: loaded, candidates: candidates, context: context)
            }
        }
        return FetchRequest(
            fetchRequest.request,
            lookup: lookup,
            reuse: reuse,
            candidates: candidates,
            offered: offered,
            completion: completion
        )
    }

    private func decide(
        _ lookup: CacheLookup,
        candidates: [CacheCandidate],
        context: CallContext
    ) -> ReasonedReuseDecision {
        ReasonedReuseDecision(
            request: lookup.head,
            lookup.cacheControl,
            candidates: candidates.map(\.stored),
            isOwn: lookup.sharedKey == nil ? [] : candidates.map { $0.partition == lookup.principal },
            directive: lookup.directive,
            now: context.clock.timestamp,
            options: cache.options,
            secret: cache.store.secret,
            hasContentKey: lookup.content != nil
        ).replacingNotStored(by: cache.reasonForNothing(lookup, candidates: candidates))
    }

    /// Answers from the selected stored response, or asks the origin to confirm or complete it.
    private func withStored(
        _ selected: LoadedResponse,
        reuse: ReasonedReuseDecision,
        candidates: [CacheCandidate],
        request: URLRequest,
        lookup: CacheLookup,
        context: CallContext
    ) async -> Decision {
        func fetchRequest(asking indices: [Int]) async -> FetchRequest {
            FetchRequest(
                request,
                lookup: lookup,
                reuse: reuse,
                candidates: candidates,
                offered: await offer(indices, selected: selected, candidates: candidates, context: context)
            )
        }
        func hit(_ kind: HitKind) -> Response {
            answerHit(
                selected,
                to: lookup,
                request: request,
                reason: reuse.reason,
                kind: kind,
                context: context
            )
        }
        switch reuse.decision {
        case .reuse(_, _, false) where lookup.history.isFilled:
            return .serve(
                answerCollapsed(selected, to: lookup, request: request, reason: .filledElsewhere, context: context)
            )
        case .reuse(_, _, let isStale):
            return .serve(hit(isStale ? .stale : .fresh))
        case .reuseWhileRevalidating(let indices, _):
            return .serveAndRefresh(hit(.revalidating), await fetchRequest(asking: indices))
        case .revalidate(let indices):
            return .fetch(await fetchRequest(asking: indices))
        case .complete(_, let missing, let fields):
            return .fetch(
                FetchRequest(
                    request,
                    lookup: lookup,
                    reuse: reuse,
                    candidates: candidates,
                    completion: Completion(loaded: selected, missing: missing, fields: fields)
                )
            )
        case .forward, .unsatisfiable:
            return .bypass
        }
    }

    /// The stored responses whose validators are sent, with loaded bodies, the selected one first.
    func offer(
        _ indices: [Int],
        selected: LoadedResponse,
        candidates: [CacheCandidate],
        context: CallContext
    ) async -> [LoadedResponse] {
        var offered = [selected]
        for index in indices.dropFirst() {
            if let loaded = await load(candidates[index], context: context) { offered.append(loaded) }
        }
        return offered
    }

    /// Sends the request, unless nothing may be sent (RFC 9111 §5.2.1.7).
    private func withoutStored(
        _ reuse: ReasonedReuseDecision,
        candidates: [CacheCandidate],
        request: URLRequest,
        lookup: CacheLookup,
        context: CallContext
    ) throws -> Decision {
        guard case .unsatisfiable(let reason) = reuse.decision else {
            if let reason = lookup.bypassReason {
                return bypass(reason, metrics: lookup.metrics, context: context)
            }
            return .fetch(
                FetchRequest(
                    request,
                    lookup: lookup,
                    reuse: reuse,
                    candidates: candidates
                )
            )
        }
        let response = gatewayTimeout(reason, to: request, lookup: lookup, context: context)
        if lookup.directive.onlyIfCached, !context.options.cache.onlyIfCached {
            throw ServiceError(
                .resourceUnavailable,
                "The cache has no usable response, and the request's cachePolicy forbids loading one. Use another cachePolicy.",
                cause: URLError(.resourceUnavailable)
            )
        }
        return .serve(response)
    }

    /// The error response of a cache that can use nothing of what is stored, and does not get an answer from the origin.
    func gatewayTimeout(
        _ reason: CacheReason,
        to request: URLRequest,
        lookup: CacheLookup,
        context: CallContext
    ) -> Response {
        let decision = CacheDecision(.unsatisfiable, reason: reason)
        lookup.metrics.count(decision) { $0.misses += 1 }
        explain(decision, context: context)
        var response = Response(status: .gatewayTimeout, url: request.url, source: .synthesized)
        response.cacheDecision = decision
        return response
    }

    // MARK: Results

    public func onSuccess(
        _ response: inout Response,
        _ request: URLRequest,
        _ context: inout CallContext
    ) async throws {
        guard let transaction = context.transaction else {
            response.cacheDecision = CacheDecision(.bypass, reason: .target, storage: .notStored(.target))
            return
        }
        var lookup = transaction.lookup
        if let order = context.exchange?.order { context.fetch?.received(order) }
        let invalid = await invalidate(by: response, lookup: lookup, context: context)
        await sweep(by: response, lookup: lookup, context: context)
        let mark = lookup.generation.mark
        lookup.generation.mark = cache.writer.invalidations.mark(mark, of: lookup.key.target, after: invalid)
        let outcome: ResponseOutcome
        if let completion = transaction.fetchRequest?.completion, context.conditions != nil,
            response.status == .partialContent
        {
            outcome = try await complete(completion, with: &response, lookup: lookup, context: context)
        } else if let offered = transaction.fetchRequest?.offered, !offered.isEmpty, response.status == .notModified,
            context.conditions != nil || !lookup.head.isConditionalOrPartial
        {
            // If the request was sent in its original form, a 304 answers the caller's own condition.
            outcome = try await useOffered(offered, for: &response, lookup: lookup, context: context)
        } else {
            if lookup.head.method == .head { await updateStored(byHead: response, lookup: lookup, context: context) }
            outcome = await store(&response, lookup: lookup, context: context)
        }
        if context.fetch != nil {
            context.transaction?.outcome = outcome
        } else if let reason = lookup.bypassReason {
            response.cacheDecision = CacheDecision(.bypass, reason: reason, storage: outcome.storage)
            CacheStatusField(cache.options, isStale: false)?.append(to: &response, key: lookup.key)
        }
    }

    public func onFailure(
        _ error: any Error,
        _ request: URLRequest,
        _ context: inout CallContext
    ) async -> Response? {
        guard let lookup = context.transaction?.lookup else { return nil }
        let failure = ServiceError.attemptFailure(of: error)
        let wasSent = context.exchange != nil
        await invalidate(by: failure, wasSent: wasSent, lookup: lookup, context: context)
        return nil
    }

    public func onCancel(_ request: URLRequest, _ context: CallContext) {
        guard let lookup = context.transaction?.lookup, !lookup.head.method.isSafe, context.exchange != nil else {
            return
        }
        // The origin may have received the request; and a cancelled call waits for nothing.
        let failure = ServiceError.attemptFailure(of: CancellationError())
        cache.writer.invalidate(lookup.key.target, in: context.background) { [self] in
            await invalidate(by: failure, wasSent: true, lookup: lookup, context: context)
        }
    }

    private func bypass(_ reason: CacheReason, metrics: CallMetrics, context: CallContext) -> Decision {
        let decision = CacheDecision(.bypass, reason: reason)
        metrics.count(decision) { $0.bypasses += 1 }
        explain(decision, context: context)
        return .bypass
    }

    /// A stored response as the answer to a call that waits for nothing else.
    func answerHit(
        _ loaded: LoadedResponse,
        to lookup: CacheLookup,
        request: URLRequest,
        reason: CacheReason,
        kind: HitKind,
        context: CallContext
    ) -> Response {
        var response = answer(
            loaded,
            to: lookup,
            request: request,
            source: kind.isStale ? .stale : .fresh,
            context: context,
            counted: kind == .onError ? .staleOnError : .hit
        )
        let decision = decision(kind == .onError ? .stale : .hit, reason: reason, loaded: loaded, context: context)
        response.cacheDecision = decision
        lookup.metrics.count(kind, reason: reason, delay: loaded.stored.delay)
        record(loaded)
        explain(decision, context: context)
        return response
    }

    /// A decision with the age and freshness of the stored response it is about.
    func decision(
        _ outcome: CacheDecision.Outcome,
        reason: CacheReason,
        loaded: LoadedResponse,
        context: CallContext,
        storage: CacheDecision.Storage? = nil
    ) -> CacheDecision {
        let standing = loaded.stored.standing(now: context.clock.timestamp, options: cache.options)
        return CacheDecision(
            outcome,
            reason: reason,
            storage: storage,
            age: standing.age,
            freshnessLeft: standing.freshnessLeft
        )
    }

    /// - Parameter leader: the call whose exchange answered, if it was another one's.
    func explain(_ decision: CacheDecision, context: CallContext, leader: CallID? = nil) {
        context.emit(.cacheDecided) { event in
            event.cacheDecision = decision
            event.leader = leader
        }
    }
}

extension StoredResponse {
    var hasStrongTag: Bool { entityTag.map { !$0.isWeak } ?? false }
}

extension ReuseDecision {
    fileprivate var isReuse: Bool { if case .reuse = self { true } else { false } }
}
