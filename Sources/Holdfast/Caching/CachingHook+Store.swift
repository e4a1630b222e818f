// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import HoldfastSemantics
internal import HoldfastStorage

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// The hook's dealings with its store, whose every failure is counted, reported and survived.
extension CachingHook {
    func candidates(for lookup: CacheLookup, _ context: CallContext) async -> [CacheCandidate] {
        var found = await candidates(under: lookup.key, for: lookup, context)
        if let key = lookup.sharedKey { found += await candidates(under: key, for: lookup, context) }
        guard cache.holdsSearchVariance else { return found }
        for key in [lookup.key, lookup.sharedKey].compactMap({ $0 }) {
            for equivalent in await equivalentKeys(of: key, context) {
                found += await candidates(under: equivalent, for: lookup, context)
                    .filter { isEquivalent($0.entry, $0.stored, lookup) }
            }
        }
        return found
    }

    private func candidates(
        under key: CacheKey,
        for lookup: CacheLookup,
        _ context: CallContext
    ) async -> [CacheCandidate] {
        let now = context.clock.timestamp
        var found: [CacheCandidate] = []
        for entry in await entries(for: StoreKey(key.framed), context) {
            if let stored = cache.decoded.response(of: entry) {
                let isOwn = lookup.owns(key)
                guard isOwn || stored.mayAnswerCookies(now: now, options: cache.options) else { continue }
                found.append(CacheCandidate(entry: entry, stored: stored, isOwn: isOwn, partition: key.partition))
            } else {
                await remove(entry, context)
            }
        }
        return found
    }

    func entries(for key: StoreKey, _ context: CallContext) async -> [StoredEntry] {
        let now = StoreInstant(context.clock.timestamp)
        if let entries = cache.store.peek(key, now: now) { return entries }
        do throws(StoreError) {
            return try await cache.store.entries(for: key, now: now)
        } catch {
            storeFailed(error, context)
            return []
        }
    }

    /// Takes hold of a candidate's body, so that it can be served whatever happens to its entry; nil where it is unreadable.
    func hold(_ candidate: CacheCandidate, _ context: CallContext) async -> HeldResponse? {
        do throws(StoreError) {
            return try await HeldResponse(candidate, in: cache.store)
        } catch {
            storeFailed(error, context)
            if error.code == .corrupt { await remove(candidate.entry, context) }
            return nil
        }
    }

    /// Writes down what a stored response became by news of it; nil where nothing was written.
    private func freshen(
        _ entry: StoredEntry,
        as stored: StoredResponse,
        by received: ReceivedExchange,
        in context: CallContext
    ) async -> StoredEntry? {
        let lookup = received.lookup
        let answersQueries = stored.head.fields.contains(.noVarySearch)
        let claim = received.claim(on: entry.key, nominated: stored.nominated)
        guard cache.writer.holds(lookup.generation, for: lookup.key.target, answersQueries: answersQueries) else {
            // The response itself stays as it is; nothing older than this news of it may take its place.
            _ = cache.writer.order.enter(claim, for: lookup.key.target)
            return nil
        }
        var description = entry.description
        description.metadata = stored.encoded
        description.uselessAfter = StoreInstant(stored.uselessAfter(cache.options))
        if let known = cache.decoded.response(of: entry) {
            description.tags = cache.tags(cache.ownTags(description.tags, of: known), for: stored)
        }
        let equivalent = await noteSearchVariance(
            of: stored,
            under: entry.key,
            until: description.uselessAfter,
            context
        )
        do throws(StoreError) {
            let freshened = try await cache.writer.freshen(
                entry,
                with: description,
                claim: claim,
                for: lookup.key.target,
                now: context.clock.timestamp
            )
            // Something else lies in its place by now: if that is older, the requester has been told of something newer.
            if freshened == nil { await giveUp(claim, of: received, in: context) }
            if !equivalent.isEmpty, let freshened { await removeOlder(beside: freshened, by: received, in: context) }
            return freshened
        } catch {
            storeFailed(error, context)
            return nil
        }
    }

    /// Does what admission says of a stored response; nil where that is not written down anew.
    func apply(
        _ admission: Admission,
        to entry: StoredEntry,
        by received: ReceivedExchange,
        in context: CallContext
    ) async -> StoredEntry? {
        switch admission.action {
        case .freshen(let stored): return await freshen(entry, as: stored, by: received, in: context)
        case .remove:
            let nominated = cache.decoded.response(of: entry)?.nominated ?? NominatedFields()
            await remove(
                entry,
                claim: received.claim(on: entry.key, nominated: nominated),
                for: received.lookup.key.target,
                context
            )
        case .store, .pass: break
        }
        return nil
    }

    /// Whether a candidate is stored for the look-up's own values of what it nominates.
    func matches(_ candidate: CacheCandidate, _ lookup: CacheLookup) -> Bool {
        candidate.isOwn && candidate.stored.nominated.matches(lookup.head.fields, secret: cache.store.secret)
    }

    /// A response that came is not kept: what is older is not written any more, and what is stored of it goes, since the most recent
    /// response must not depend on what a cache happened to lose (RFC 9111 §4).
    func giveUp(_ claim: ExchangeOrder.Claim, of received: ReceivedExchange, in context: CallContext) async {
        guard cache.writer.order.enter(claim, for: received.lookup.key.target) else { return }
        await removeOlder(than: claim.order, under: claim.key, for: received.lookup, in: context)
    }

    /// The store failed to take a response that came.
    func storingFailed(
        _ error: StoreError,
        _ entry: AdmittedEntry,
        of received: ReceivedExchange,
        in context: CallContext
    ) async {
        storeFailed(error, context)
        await giveUp(entry.claim, of: received, in: context)
    }

    /// Removes what is stored for a request beside a newer response.
    func removeOlder(beside newer: StoredEntry, by received: ReceivedExchange, in context: CallContext) async {
        await removeOlder(
            than: received.exchange.requestOrder,
            under: newer.key,
            except: newer,
            for: received.lookup,
            in: context
        )
    }

    /// Removes what is stored for a request and was asked for no later than `order`: a newer response is there, or was and could
    /// not be kept, and an older one must not come to light again (RFC 9111 §4).
    ///
    /// - Parameters:
    ///   - key: of the newer response: what is stored in its partition goes, and in that of the requester.
    ///   - newer: stays.
    func removeOlder(
        than order: HybridTimestamp,
        under key: StoreKey,
        except newer: StoredEntry? = nil,
        for lookup: CacheLookup,
        in context: CallContext
    ) async {
        let stored = await candidates(for: lookup, context)
            .filter { $0.stored.requestOrder <= order && matches($0, lookup) }
        await remove(stored, supersededUnder: key, except: newer, for: lookup, in: context)
    }

    /// Removes those of what was stored for a request that a newer response takes the place of.
    func remove(
        _ older: [CacheCandidate],
        supersededUnder key: StoreKey,
        except newer: StoredEntry?,
        for lookup: CacheLookup,
        in context: CallContext
    ) async {
        guard !older.isEmpty else { return }
        let partition = CacheKey.Parts(framed: key.bytes)?.partition
        for candidate in older where candidate.partition == partition || candidate.partition == lookup.principal {
            let entry = candidate.entry
            if entry.key != newer?.key || entry.variant != newer?.variant { await remove(entry, context) }
        }
    }

    func remove(
        _ entry: StoredEntry,
        claim: ExchangeOrder.Claim? = nil,
        for target: TargetURI? = nil,
        _ context: CallContext
    ) async {
        do throws(StoreError) {
            try await cache.writer.remove(entry, claim: claim, for: target)
        } catch {
            storeFailed(error, context)
        }
    }

    func storeFailed(_ error: StoreError, _ context: CallContext) {
        if error.code == .superseded || error.code == .closed || error.code == .tooLarge { return }
        // The store's own, whatever was being asked for: of no origin.
        CallTally(cache.meter, nil, LookTrail(begun: context.clock.now), context.clock).count { $0.storeFailures += 1 }
        context.emit(.storeFailed) { event in
            event.error = error
            event.detail = error.code.description
        }
    }
}
