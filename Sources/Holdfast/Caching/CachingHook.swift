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
        let candidates = lookup.bypassReason == nil ? await candidates(for: lookup, context) : []
        let decision = ReuseDecision.decide(
            request: lookup.head,
            candidates: candidates.map(\.stored),
            directive: lookup.directive,
            now: context.clock.timestamp,
            options: cache.options,
            secret: cache.store.secret
        )
        switch decision {
        case .reuse(let index, _, let isStale):
            guard let held = await hold(candidates[index], context) else { return miss("unreadable", context) }
            cache.count { counts in
                if isStale { counts.staleHits += 1 } else { counts.hits += 1 }
            }
            explain(isStale ? "stale" : "fresh", context)
            return held.response(to: lookup, source: isStale ? .stale : .fresh, now: context.clock.timestamp) {
                [cache] bytes in cache.count { $0.hitBytes += bytes }
            }
        case .revalidate(let indices):
            var offered: [HeldResponse] = []
            for index in indices {
                if let held = await hold(candidates[index], context) { offered.append(held) }
            }
            guard !offered.isEmpty else { return miss("unreadable", context) }
            for line in Validation.conditionalFields(for: offered.map(\.stored)) {
                request.setValue(line.value, forHTTPHeaderField: line.name.rawName)
            }
            context[OfferedResponses.self] = OfferedResponses(responses: offered)
            explain("revalidate", context)
            return nil
        case .forward(let reason):
            return lookup.bypassReason == nil ? miss(reason.rawValue, context) : bypass(reason.rawValue, context)
        case .unsatisfiable(let reason):
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
    }

    public func onSuccess(
        _ response: inout Response,
        _ request: URLRequest,
        _ context: inout CallContext
    ) async throws {
        guard let lookup = context[CacheLookup.self] else { return }
        for target in Invalidation.targets(request: lookup.head, response: response.head) {
            await invalidate(target, lookup, context)
        }
        if let offered = context[OfferedResponses.self] {
            if response.status == .notModified {
                try await useOffered(offered.responses, for: &response, lookup, context)
                return
            }
            cache.count { $0.misses += 1 }
        }
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

extension CachingHook {
    /// Answers with the stored response that a 304 selects, freshened (RFC 9111 §4.3.3, §4.3.4).
    private func useOffered(
        _ offered: [HeldResponse],
        for response: inout Response,
        _ lookup: CacheLookup,
        _ context: CallContext
    ) async throws {
        let now = context.clock.timestamp
        let index = Validation.selected(by: response.head, among: offered.map(\.stored))
        var held = offered[index ?? 0]
        if index != nil {
            held.stored = held.stored.freshened(
                by: response.head,
                requestTime: response.requestTime ?? now,
                responseTime: response.responseTime ?? now
            )
            await replaceDescription(of: held, context)
        }
        cache.count { $0.revalidated += 1 }
        response.body.discard()
        var answer = held.response(to: lookup, source: .revalidated, now: now) { [cache] bytes in
            cache.count { $0.revalidatedBytes += bytes }
        }
        answer.url = response.url
        answer.requestTime = response.requestTime
        answer.responseTime = response.responseTime
        answer.attempts = response.attempts
        response = answer
    }

    /// Stores a response while its body passes through, where the rules allow it.
    private func store(_ response: inout Response, _ lookup: CacheLookup, _ context: CallContext) async {
        guard let exchange = context.exchange, response.source != .synthesized else { return }
        let wasLookedUp = lookup.bypassReason == nil
        let delivered: @Sendable (Int) -> Void = { [cache] bytes in
            if wasLookedUp { cache.count { $0.networkBytes += bytes } }
        }
        let plan = StoragePlan(response, lookup, exchange, context, cache)
        guard let entry = plan.entry else {
            context.emit(.responseNotStored) { $0.detail = plan.reason }
            if let source = response.body.source {
                response.body = ResponseBody(CountedBody(source, delivered: delivered), length: response.body.length)
            } else {
                delivered(response.body.length ?? 0)
            }
            return
        }

        let now = StoreInstant(context.clock.timestamp)
        let writer: any EntryWriter
        do throws(StoreError) {
            writer = try await cache.store.write(
                entry.key,
                variant: entry.variant,
                description: entry.description,
                expectedLength: response.body.length,
                now: now
            )
            if let bytes = response.body.bytesInMemory, !bytes.isEmpty { try await writer.append(bytes) }
        } catch {
            storeFailed(error, context)
            return
        }
        let finish = commit(in: context)
        if let source = response.body.source {
            let storing = StoringBody(
                source,
                expectedLength: response.body.length,
                writer: writer,
                finish: finish,
                fail: { [self] error in storeFailed(error, context) },
                delivered: delivered
            )
            response.body = ResponseBody(storing, length: response.body.length)
        } else {
            delivered(response.body.length ?? 0)
            await finish(writer)
        }
    }

    /// Commits a whole entry: at once, or once the caller's acceptance has taken the response.
    private func commit(in context: CallContext) -> @Sendable (any EntryWriter) async -> Void {
        { [self] writer in
            guard let verdict = context.verdict else { return await commit(writer, context) }
            await verdict.whenDecided { [self] accepted in
                if accepted {
                    await commit(writer, context)
                } else {
                    writer.abandon()
                }
            }
        }
    }

    private func commit(_ writer: any EntryWriter, _ context: CallContext) async {
        do throws(StoreError) {
            try await writer.commit(nil, now: StoreInstant(context.clock.timestamp))
            cache.count { $0.stored += 1 }
            context.emit(.responseStored)
        } catch {
            // Invalidated meanwhile: not a fault of the store, the response was merely overtaken.
            if error.code == .superseded {
                context.emit(.responseNotStored) { $0.detail = "invalidated meanwhile" }
            } else {
                storeFailed(error, context)
            }
        }
    }

    private func candidates(for lookup: CacheLookup, _ context: CallContext) async -> [CacheCandidate] {
        let now = StoreInstant(context.clock.timestamp)
        var found: [CacheCandidate] = []
        for key in [lookup.storeKey, lookup.sharedStoreKey].compactMap({ $0 }) {
            var entries = cache.store.peek(key, now: now)
            if entries == nil {
                do throws(StoreError) {
                    entries = try await cache.store.entries(for: key, now: now)
                } catch {
                    storeFailed(error, context)
                }
            }
            for entry in entries ?? [] {
                if let stored = StoredResponse(decoding: entry.description.metadata) {
                    found.append(CacheCandidate(entry: entry, stored: stored))
                } else {
                    await remove(entry, context)
                }
            }
        }
        return found
    }

    /// Takes hold of a candidate's body, so that it can be served whatever happens to its entry; nil where it is unreadable.
    private func hold(_ candidate: CacheCandidate, _ context: CallContext) async -> HeldResponse? {
        do throws(StoreError) {
            return try await HeldResponse(candidate, in: cache.store)
        } catch {
            storeFailed(error, context)
            if error.code == .corrupt { await remove(candidate.entry, context) }
            return nil
        }
    }

    private func replaceDescription(of held: HeldResponse, _ context: CallContext) async {
        var description = held.entry.description
        description.metadata = held.stored.encoded
        description.uselessAfter = StoreInstant(held.stored.uselessAfter(cache.options))
        do throws(StoreError) {
            try await cache.store.replaceDescription(
                of: held.entry,
                with: description,
                now: StoreInstant(context.clock.timestamp)
            )
        } catch {
            storeFailed(error, context)
        }
    }

    /// Each partition is a cache of its own: an unsafe request invalidates in its own and in the shared one.
    private func invalidate(_ target: TargetURI, _ lookup: CacheLookup, _ context: CallContext) async {
        for partition in Set([lookup.principal, ""]) {
            do throws(StoreError) {
                try await cache.store.invalidate(
                    StoreKey(CacheKey(partition: partition, method: .get, target: target).framed)
                )
            } catch {
                storeFailed(error, context)
            }
        }
    }

    private func remove(_ entry: StoredEntry, _ context: CallContext) async {
        do throws(StoreError) {
            try await cache.store.remove(entry)
        } catch {
            storeFailed(error, context)
        }
    }

    private func storeFailed(_ error: StoreError, _ context: CallContext) {
        if error.code == .superseded || error.code == .closed { return }
        cache.count { $0.storeFailures += 1 }
        context.emit(.storeFailed) { event in
            event.error = error
            event.detail = error.code.description
        }
    }
}
