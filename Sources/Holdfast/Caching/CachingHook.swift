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
public struct CachingHook: ServiceHook {
    /// The cache this hook reads and writes.
    public let cache: HTTPCache

    /// A hook over `cache`.
    public init(_ cache: HTTPCache) {
        self.cache = cache
    }

    public var scope: HookScope { .message }

    public func onSchedule(_ request: inout URLRequest, _ context: inout CallContext) async throws -> Response? {
        cache.count { $0.requests += 1 }
        guard let lookup = CacheLookup(request, context, cache) else {
            return bypass("the URL is no http or https URI", context)
        }
        context[CacheLookup.self] = lookup
        var candidates = lookup.bypassReason == nil ? await candidates(for: lookup, context) : []
        var hasLookedAgain = false
        while true {
            let decision = decide(lookup, candidates, context)
            if let index = decision.selectedCandidate {
                if let held = await hold(candidates[index], context) {
                    return await use(held, decision, candidates, &request, lookup, &context)
                }
                // Replaced or evicted since the look-up, or unreadable: decide again without it.
                if hasLookedAgain {
                    candidates.remove(at: index)
                } else {
                    hasLookedAgain = true
                    candidates = await self.candidates(for: lookup, context)
                }
                continue
            }
            return try answerWithoutStored(decision, request, lookup, context)
        }
    }

    private func decide(
        _ lookup: CacheLookup,
        _ candidates: [CacheCandidate],
        _ context: CallContext
    ) -> ReuseDecision {
        ReuseDecision.decide(
            request: lookup.head,
            candidates: candidates.map(\.stored),
            directive: lookup.directive,
            now: context.clock.timestamp,
            options: cache.options,
            secret: cache.store.secret
        )
    }

    /// Answers with the stored response that was selected, or makes the request conditional.
    private func use(
        _ selected: HeldResponse,
        _ decision: ReuseDecision,
        _ candidates: [CacheCandidate],
        _ request: inout URLRequest,
        _ lookup: CacheLookup,
        _ context: inout CallContext
    ) async -> Response? {
        switch decision {
        case .reuse(_, _, let isStale):
            cache.count { counts in
                if isStale { counts.staleHits += 1 } else { counts.hits += 1 }
            }
            explain(isStale ? "stale" : "fresh", context)
            return answer(selected, to: lookup, source: isStale ? .stale : .fresh, context) { [cache] bytes in
                cache.count { $0.hitBytes += bytes }
            }
        case .revalidate(let indices):
            var offered = [selected]
            for index in indices.dropFirst() {
                if let held = await hold(candidates[index], context) { offered.append(held) }
            }
            let stored = offered.map(\.stored)
            let conditions = Validation.conditionalFields(for: stored)
            for line in conditions { request.setValue(line.value, forHTTPHeaderField: line.name.rawName) }
            context.validation = OfferedValidation(fields: conditions.map(\.name)) { notModified in
                Validation.selected(by: notModified, among: stored) != nil
            }
            context[OfferedResponses.self] = OfferedResponses(responses: offered)
            explain("revalidate", context)
            return nil
        case .forward, .unsatisfiable:
            return nil
        }
    }

    /// Lets the request pass, or answers that nothing is stored where nothing may be sent.
    private func answerWithoutStored(
        _ decision: ReuseDecision,
        _ request: URLRequest,
        _ lookup: CacheLookup,
        _ context: CallContext
    ) throws -> Response? {
        guard case .unsatisfiable(let reason) = decision else {
            if let bypassReason = lookup.bypassReason { return bypass(bypassReason.rawValue, context) }
            if case .forward(let reason) = decision { return miss(reason.rawValue, context) }
            return miss("unreadable", context)
        }
        _ = miss(reason.rawValue, context)
        if context.options.cache == .default, request.cachePolicy == .returnCacheDataDontLoad {
            throw ServiceError(
                .resourceUnavailable,
                "Nothing usable is stored and the request's cachePolicy forbids to load it; use another cachePolicy.",
                cause: URLError(.resourceUnavailable)
            )
        }
        return Response(status: .gatewayTimeout, url: request.url, source: .synthesized)
    }

    public func onSuccess(
        _ response: inout Response,
        _ request: URLRequest,
        _ context: inout CallContext
    ) async throws {
        guard var lookup = context[CacheLookup.self] else { return }
        let invalid = Invalidation.targets(request: lookup.head, response: response.head)
        for target in invalid { await invalidate(target, lookup, context) }
        lookup.mark = cache.invalidations.mark(lookup.mark, of: lookup.head.target, after: invalid)
        if let offered = context[OfferedResponses.self] {
            if response.status == .notModified {
                try await useOffered(offered.responses, for: &response, lookup, context)
                return
            }
            cache.count { $0.misses += 1 }
        }
        if lookup.head.method == .head { await updateStored(byHead: response, lookup, context) }
        await store(&response, lookup, context)
    }

    public func onFailure(
        _ error: any Error,
        _ request: URLRequest,
        _ context: inout CallContext
    ) async -> Response? {
        endUnanswered(context)
        return nil
    }

    public func onCancel(_ request: URLRequest, _ context: CallContext) {
        endUnanswered(context)
    }

    /// A validation that got no answer was a miss.
    private func endUnanswered(_ context: CallContext) {
        if context[OfferedResponses.self] != nil { cache.count { $0.misses += 1 } }
    }

    private func bypass(_ reason: String, _ context: CallContext) -> Response? {
        cache.count { $0.bypasses += 1 }
        explain("bypass: \(reason)", context)
        return nil
    }

    private func miss(_ reason: String, _ context: CallContext) -> Response? {
        cache.count { $0.misses += 1 }
        explain("miss: \(reason)", context)
        return nil
    }

    private func explain(_ detail: String, _ context: CallContext) {
        context.emit(.cacheDecided) { $0.detail = detail }
    }
}

/// The stored responses whose validators were sent to the origin, bodies at hand.
private struct OfferedResponses: Sendable {
    let responses: [HeldResponse]
}
