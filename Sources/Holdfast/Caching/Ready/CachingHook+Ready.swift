// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import HoldfastSemantics
internal import HoldfastStorage

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// The short way: plain requests for what was asked for before, and is fresh, are answered without a judgement of their own.
///
/// It decides nothing that the long way would decide otherwise; where anything is in doubt, the request goes the long way.
extension CachingHook {
    /// The answer to a plain request, where one is ready and still as good.
    func readyAnswer(to request: URLRequest, _ trail: LookTrail, _ context: inout CallContext) -> Response? {
        guard !context.options.concernReuse, context.body.isNone, context.fieldsOfHooks(in: request).isEmpty,
            let hit = readyHit(for: request, trail, context.clock, context.transport)
        else { return nil }
        var response = hit.response
        if context.isObserved, let decision = response.cacheDecision { explain(decision, context) }
        // Only a caller that judges responses can refuse one.
        if !context.options.areDefault {
            response.storedOrigin = EntryOrigin(hook: self, entry: hit.entry, context: context)
        }
        return response
    }

    /// - Parameter request: without content, and sent without a wish of the caller's.
    func readyHit(
        for request: URLRequest,
        _ trail: LookTrail,
        _ clock: any HoldfastClock,
        _ transport: any Transport
    ) -> (response: Response, entry: StoredEntry)? {
        guard let url = request.url, let ready = cache.ready.answer(for: url.absoluteString, stripe: trail.stripe),
            request.httpMethod == "GET", request.cachePolicy == .useProtocolCachePolicy, !cache.recording.isUnderWay,
            !cache.writer.hasPendingInvalidations
        else { return nil }
        let implicit = transport.implicitFields(for: request)
        guard ready.answers(request.allHTTPHeaderFields ?? [:], implicit: implicit) else { return nil }
        let now = clock.timestamp
        let standing = ready.reuse.standing(now: now)
        guard !standing.isStale, let entries = cache.store.peek(ready.key, now: StoreInstant(now)) else { return nil }
        guard entries.count == 1, entries[0].version == ready.version, !entries[0].needsValidation,
            ready.searchVarianceCount == cache.searchVarianceCount,
            let body = cache.store.peekBody(of: entries[0])
        else {
            cache.ready.giveUp(ready, stripe: trail.stripe)
            return nil
        }
        cache.meter.hit(
            from: ready.origin,
            in: trail.begun.minute,
            stripe: trail.stripe,
            bytes: body.count,
            saved: ready.saved
        )
        let decision = CacheDecision(.hit, .fresh, age: standing.age, freshnessLeft: standing.freshnessLeft)
        let fields = ready.fields(now: now)
        return (Response(ready, fields, body, to: request, url, implicit: implicit, decision), entries[0])
    }

    /// Keeps ready what answered a request, if that was a plain one.
    func keepReady(
        _ selected: HeldResponse,
        of candidates: [CacheCandidate],
        _ request: URLRequest,
        _ lookup: CacheLookup,
        _ context: CallContext
    ) {
        guard candidates.count == 1, selected.isAtHand, selected.isOwn, lookup.head.method == .get,
            request.httpMethod == "GET", lookup.principal.isEmpty, lookup.sharedKey == nil, lookup.content == nil,
            lookup.directive == .default, !context.options.concernReuse, context.body.isNone,
            request.cachePolicy == .useProtocolCachePolicy, cache.options.cacheName == nil,
            !selected.entry.needsValidation, selected.entry.version != .beingWritten,
            // What another query's response answers for is looked for anew: one of the URL's own would go before it.
            selected.entry.key == lookup.storeKey,
            // A redirect is followed above, where an answer that takes part in no call never comes by.
            !selected.stored.head.status.isRedirection, selected.entry.headLength <= ReadyAnswers.longestHead,
            !lookup.presented.contains(where: { ReuseFields.names.contains($0.name.canonicalName) }),
            let url = request.url?.absoluteString, cache.ready.hasPlace(for: url, stripe: lookup.trail.stripe),
            let reuse = PlainReuse(selected.stored, options: cache.options),
            let answer = ReadyAnswer(
                selected.entry,
                selected.stored,
                reuse,
                url: url,
                request,
                implicit: context.transport.implicitFields(for: request),
                lookup.head.target,
                searchVarianceCount: lookup.searchVarianceCount
            )
        else { return }
        cache.ready.keep(answer, stripe: lookup.trail.stripe)
    }
}

/// The entry that a ready answer came from, should the caller refuse it.
private final class EntryOrigin: RemovableOrigin {
    private let hook: CachingHook
    private let entry: StoredEntry
    private let context: CallContext

    init(hook: CachingHook, entry: StoredEntry, context: CallContext) {
        self.hook = hook
        self.entry = entry
        self.context = context
    }

    func remove() async { await hook.remove(entry, context) }
}

extension StoredEntry {
    /// The bytes by which the entry is found and described.
    fileprivate var headLength: Int { key.bytes.count + variant.bytes.count + description.metadata.count }
}
