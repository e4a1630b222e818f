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

/// Answers from an ``HTTPCache``, asks the origin with conditions, and stores what comes back (RFC 9111).
///
/// `Pipeline(cache:)` places it beneath all other hooks, where it sees every hop's request as it will be sent. Listed by
/// hand it must stand below any hook that adds credentials; where what was sent shows another principal than what was looked
/// up, nothing is stored.
///
/// A call that is looked up and needs the origin waits for an exchange in a task of its own, which equal calls share
/// (collapsed forwarding): the hooks beneath this one, the attempts and this hook's own ending run there, once for all of them.
public struct CachingHook: ServiceHook {
    /// The cache this hook reads and writes.
    public let cache: HTTPCache

    /// A hook over `cache`.
    public init(_ cache: HTTPCache) {
        self.cache = cache
    }

    public var scope: HookScope { .message }

    public func onSchedule(_ request: inout URLRequest, _ context: inout CallContext) async throws -> Response? {
        let trail = LookTrail(begun: context.clock.now)
        if let response = readyAnswer(to: request, trail, &context) { return response }
        let asked = request.url
        request.spellTargetAsKeyed(in: context)
        guard var response = try await look(request, trail, &context) else { return nil }
        if response.url == nil { response.url = asked }
        StatusReport(cache.options)?.sign(&response, context[CacheLookup.self]?.key)
        return response
    }

    /// Looks for what is stored, and answers from it or through an exchange.
    func look(_ request: URLRequest, _ trail: LookTrail, _ context: inout CallContext) async throws -> Response? {
        guard var lookup = CacheLookup(request, context, cache, trail) else {
            let tally = CallTally(cache.meter, nil, trail, context.clock)
            if trail.isFirst { tally.arrive() }
            return bypass(.target, tally, context)
        }
        if trail.isFirst { lookup.tally.arrive() }
        if cache.writer.hasPendingInvalidations {
            await cache.writer.waitForInvalidations(of: lookup.key.target)
            lookup.generation = cache.writer.generation(of: lookup.key.target)
        }
        var request = request
        // Positions count in bytes as they are stored, so no content coding may stand between (RFC 9110 §14.2). Which variant
        // is meant goes by what the caller accepts, so that the parts of a response and its whole are one.
        if lookup.isConditionalOrPartial, lookup.head.fields.contains(.range),
            request.value(forHTTPHeaderField: "Accept-Encoding") == nil
        {
            request.setValue("identity", forHTTPHeaderField: "Accept-Encoding")
        }
        // What is stored for a request that is not answered from it is older than what will come all the same.
        var stored = lookup.bypassReason == nil || lookup.isRetrieval ? await candidates(for: lookup, context) : []
        var candidates = lookup.bypassReason == nil ? stored : []
        var hasLookedAgain = false
        while true {
            let judgement = judge(lookup, candidates, context)
            if !judgement.decision.isReuse {
                // What is only lent is used while it is fresh. By its date the origin would be asked about another's response;
                // a strong tag names the same bytes, whoever asks.
                let count = candidates.count
                candidates.removeAll { !$0.isOwn && !$0.stored.hasStrongTag }
                if candidates.count < count { continue }
                lookup.note(stored, in: cache)
                cache.writer.begin(&lookup.generation, for: lookup.key.target)
            }
            // A call that is answered at once has no ending here, for which to keep what it was looked up by.
            if !judgement.decision.isReuse || cache.options.cacheName != nil { context[CacheLookup.self] = lookup }
            guard let index = judgement.decision.selectedCandidate else {
                return try await answerWithoutStored(judgement, candidates, request, lookup, &context)
            }
            if let held = await hold(candidates[index], context) {
                return try await use(held, judgement, candidates, request, lookup, &context)
            }
            // Replaced or evicted since the look-up, or unreadable: decide again without it.
            if hasLookedAgain {
                candidates.remove(at: index)
            } else {
                hasLookedAgain = true
                stored = await self.candidates(for: lookup, context)
                candidates = stored
            }
        }
    }

    func judge(
        _ lookup: CacheLookup,
        _ candidates: [CacheCandidate],
        _ context: CallContext
    ) -> ReuseJudgement {
        ReuseJudgement(
            request: lookup.head,
            lookup.cacheControl,
            candidates: candidates.map(\.stored),
            isOwn: lookup.sharedKey == nil ? [] : candidates.map { $0.partition == lookup.principal },
            directive: lookup.directive,
            now: context.clock.timestamp,
            options: cache.options,
            secret: cache.store.secret,
            hasContentKey: lookup.content != nil
        ).replacingNotStored(by: cache.reasonForNothing(lookup, candidates))
    }

    /// Answers with the stored response that was selected, or has the origin confirm it.
    private func use(
        _ selected: HeldResponse,
        _ judgement: ReuseJudgement,
        _ candidates: [CacheCandidate],
        _ request: URLRequest,
        _ lookup: CacheLookup,
        _ context: inout CallContext
    ) async throws -> Response? {
        switch judgement.decision {
        case .reuse(_, _, false) where lookup.trail.isFilled:
            return answerFilled(selected, to: lookup, request, context)
        case .reuse(_, _, let isStale):
            if !isStale { keepReady(selected, of: candidates, request, lookup, context) }
            return answerHit(selected, to: lookup, request, judgement.reason, isStale ? .stale : .fresh, context)
        case .reuseWhileRevalidating(let indices, _):
            let offered = await offer(indices, selected, candidates, context)
            let need = Need(request, lookup, judgement, candidates, selected, offered: offered)
            refresh(need, context)
            return answerHit(selected, to: lookup, request, judgement.reason, .revalidating, context)
        case .revalidate(let indices):
            let offered = await offer(indices, selected, candidates, context)
            return try await fly(Need(request, lookup, judgement, candidates, selected, offered: offered), &context)
        case .complete(_, let missing, let fields):
            let completion = Completion(held: selected, missing: missing, fields: fields)
            let need = Need(request, lookup, judgement, candidates, nil, offered: [], completion: completion)
            return try await fly(need, &context)
        case .forward, .unsatisfiable:
            return nil
        }
    }

    /// The stored responses whose validators are sent, bodies at hand, the selected one first.
    func offer(
        _ indices: [Int],
        _ selected: HeldResponse,
        _ candidates: [CacheCandidate],
        _ context: CallContext
    ) async -> [HeldResponse] {
        var offered = [selected]
        for index in indices.dropFirst() {
            if let held = await hold(candidates[index], context) { offered.append(held) }
        }
        return offered
    }

    /// Sends the request, or answers that nothing is stored where nothing may be sent.
    private func answerWithoutStored(
        _ judgement: ReuseJudgement,
        _ candidates: [CacheCandidate],
        _ request: URLRequest,
        _ lookup: CacheLookup,
        _ context: inout CallContext
    ) async throws -> Response? {
        guard case .unsatisfiable(let reason) = judgement.decision else {
            if let reason = lookup.bypassReason { return bypass(reason, lookup.tally, context) }
            return try await fly(Need(request, lookup, judgement, candidates, nil, offered: []), &context)
        }
        let decision = CacheDecision(.unsatisfiable, reason)
        lookup.tally.count(decision) { $0.misses += 1 }
        explain(decision, context)
        if lookup.directive.onlyIfCached, !context.options.cache.onlyIfCached {
            throw ServiceError(
                .resourceUnavailable,
                "Nothing usable is stored and the request's cachePolicy forbids to load it; use another cachePolicy.",
                cause: URLError(.resourceUnavailable)
            )
        }
        var response = Response(status: .gatewayTimeout, url: request.url, source: .synthesized)
        response.cacheDecision = decision
        return response
    }

    // MARK: Endings

    public func onSuccess(
        _ response: inout Response,
        _ request: URLRequest,
        _ context: inout CallContext
    ) async throws {
        guard var lookup = context[CacheLookup.self] else {
            response.cacheDecision = CacheDecision(.bypass, .target, storage: .notStored(.target))
            return
        }
        if let order = context.exchange?.order { context.flight?.received(order) }
        let invalid = await invalidate(by: response, lookup, context)
        await sweep(by: response, lookup, context)
        let mark = lookup.generation.mark
        lookup.generation.mark = cache.writer.invalidations.mark(mark, of: lookup.key.target, after: invalid)
        let outcome: HopOutcome
        if let completion = context[Completion.self], context.validation != nil, response.status == .partialContent {
            outcome = try await complete(completion, with: &response, lookup, context)
        } else if let offered = context[OfferedResponses.self], response.status == .notModified,
            context.validation != nil || !lookup.head.isConditionalOrPartial
        {
            // Once the request was sent as it came, a 304 answers what the caller asked.
            outcome = try await useOffered(offered.responses, for: &response, lookup, context)
        } else {
            if lookup.head.method == .head { await updateStored(byHead: response, lookup, context) }
            outcome = await store(&response, lookup, context)
        }
        if context.flight != nil {
            context[HopOutcome.self] = outcome
        } else if let reason = lookup.bypassReason {
            response.cacheDecision = CacheDecision(.bypass, reason, storage: outcome.storage)
            StatusReport(cache.options)?.sign(&response, lookup.key)
        }
    }

    public func onFailure(
        _ error: any Error,
        _ request: URLRequest,
        _ context: inout CallContext
    ) async -> Response? {
        guard let lookup = context[CacheLookup.self] else { return nil }
        let failure = ServiceError.attemptFailure(of: error)
        let wasSent = context.exchange != nil
        await invalidate(by: failure, wasSent: wasSent, lookup, context)
        return nil
    }

    public func onCancel(_ request: URLRequest, _ context: CallContext) {
        guard let lookup = context[CacheLookup.self], !lookup.head.method.isSafe, context.exchange != nil else {
            return
        }
        // The origin may have had it by then; and a cancelled call waits for nothing.
        let failure = ServiceError.attemptFailure(of: CancellationError())
        cache.writer.invalidate(lookup.key.target, in: context.background) { [self] in
            await invalidate(by: failure, wasSent: true, lookup, context)
        }
    }

    private func bypass(_ reason: CacheReason, _ tally: CallTally, _ context: CallContext) -> Response? {
        let decision = CacheDecision(.bypass, reason)
        tally.count(decision) { $0.bypasses += 1 }
        explain(decision, context)
        return nil
    }

    /// A stored response as the answer to a call that waits for nothing more.
    func answerHit(
        _ held: HeldResponse,
        to lookup: CacheLookup,
        _ request: URLRequest,
        _ reason: CacheReason,
        _ kind: HitKind,
        _ context: CallContext
    ) -> Response {
        var response = answer(held, to: lookup, request, source: kind.isStale ? .stale : .fresh, context, counted: .hit)
        let decision = decision(.hit, reason, held, context)
        response.cacheDecision = decision
        lookup.tally.count(kind, reason, delay: held.stored.delay)
        record(held)
        explain(decision, context)
        return response
    }

    /// A decision with the age and freshness of the stored response it is about.
    func decision(
        _ outcome: CacheDecision.Outcome,
        _ reason: CacheReason,
        _ held: HeldResponse,
        _ context: CallContext,
        storage: CacheDecision.Storage? = nil
    ) -> CacheDecision {
        let standing = held.stored.standing(now: context.clock.timestamp, options: cache.options)
        return CacheDecision(
            outcome,
            reason,
            storage: storage,
            age: standing.age,
            freshnessLeft: standing.freshnessLeft
        )
    }

    /// - Parameter leader: the call whose exchange answered, where it was another one's.
    func explain(_ decision: CacheDecision, _ context: CallContext, leader: CallID? = nil) {
        context.emit(.cacheDecided) { event in
            event.cacheDecision = decision
            event.leader = leader
            event.detail = decision.description
        }
    }
}

extension StoredResponse {
    var hasStrongTag: Bool { entityTag.map { !$0.isWeak } ?? false }
}

extension ReuseDecision {
    fileprivate var isReuse: Bool { if case .reuse = self { true } else { false } }
}
