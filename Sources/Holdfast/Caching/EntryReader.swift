// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import HoldfastSemantics
internal import HoldfastStorage

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// The hook's access to its store; every failure is counted, reported and survived.
extension CachingHook {
    /// - Parameter known: what the call has looked up already.
    func candidates(
        for lookup: CacheLookup,
        _ context: CallContext,
        known: KnownEntries = KnownEntries()
    ) async -> [CacheCandidate] {
        var found = await candidates(under: lookup.key, for: lookup, context, known: known)
        if let key = lookup.sharedKey { found += await candidates(under: key, for: lookup, context, known: known) }
        guard cache.writer.holdsSearchVariance else { return found }
        for key in [lookup.key, lookup.sharedKey].compactMap({ $0 }) {
            for equivalent in await equivalentKeys(of: key, context) {
                found += await candidates(under: equivalent, for: lookup, context)
                    .filter { isEquivalent($0.entry, stored: $0.stored, lookup: lookup) }
            }
        }
        return found
    }

    private func candidates(
        under key: CacheKey,
        for lookup: CacheLookup,
        _ context: CallContext,
        known: KnownEntries = KnownEntries()
    ) async -> [CacheCandidate] {
        let now = context.clock.timestamp
        var found: [CacheCandidate] = []
        let storeKey = StoreKey(key.framed)
        let entries =
            if let known = known.entries(for: storeKey) { known } else { await self.entries(for: storeKey, context) }
        for entry in entries {
            if let stored = cache.response(of: entry) {
                let isOwn = lookup.owns(key)
                guard isOwn || stored.mayAnswerCookies(now: now, options: cache.options) else { continue }
                found.append(CacheCandidate(entry: entry, stored: stored, isOwn: isOwn, partition: key.partition))
            } else {
                await remove(entry, context: context)
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
            storeFailed(error, context: context)
            return []
        }
    }

    /// Opens a candidate's body, so that it can be served whatever happens to its entry; nil if it is unreadable.
    func load(_ candidate: CacheCandidate, context: CallContext) async -> LoadedResponse? {
        do throws(StoreError) {
            return try await LoadedResponse(candidate, in: cache.store)
        } catch {
            storeFailed(error, context: context)
            if error.code == .corrupt { await remove(candidate.entry, context: context) }
            return nil
        }
    }

    /// Applies an admission to a stored response; returns nil if it is not updated.
    ///
    /// - Parameter again: decides anew, for what another update has left of the stored response.
    func apply(
        _ admission: Admission,
        to entry: StoredEntry,
        by received: ReceivedExchange,
        in context: CallContext,
        again: (Admission.Existing) -> Admission
    ) async -> StoredEntry? {
        var (entry, admission) = (entry, admission)
        var isMarked = false
        for _ in 0..<8 {
            guard case .freshen(let merged) = admission.action else { break }
            // A mark that came meanwhile, perhaps from another process, may be later than the request.
            let stored = isMarked ? merged.needingConfirmation : merged
            switch await freshen(entry, as: stored, by: received, in: context) {
            case .written(let freshened): return freshened
            case .refused: return nil
            case .overtaken: break
            }
            let claim = received.claim(on: entry.key, nominated: stored.nominated)
            guard let (next, existing) = await updated(entry, claim: claim, by: received, in: context) else {
                // Something else has replaced it by now: if that is older, the requester has already been told of something newer.
                await giveUp(claim, of: received, in: context)
                return nil
            }
            isMarked = existing.stored.needsConfirmation
            (entry, admission) = (next, again(existing))
        }
        let nominated = cache.response(of: entry)?.nominated ?? NominatedFields()
        let claim = received.claim(on: entry.key, nominated: nominated)
        switch admission.action {
        case .freshen: await giveUp(claim, of: received, in: context)
        case .remove:
            await remove(entry, claim: claim, context: context)
            // The updates of earlier requests, written meanwhile, have made other versions of it.
            for _ in 0..<8 {
                guard let next = await updated(entry, claim: claim, by: received, in: context)?.entry else { break }
                await remove(next, context: context)
                entry = next
            }
        case .store, .pass: break
        }
        return nil
    }

    private enum Freshening {
        case written(StoredEntry)
        /// Another update has been written, or the entry is gone.
        case overtaken
        /// It must not, or cannot, be written.
        case refused
    }

    /// Stores an updated response.
    private func freshen(
        _ entry: StoredEntry,
        as stored: StoredResponse,
        by received: ReceivedExchange,
        in context: CallContext
    ) async -> Freshening {
        let lookup = received.lookup
        let answersQueries = stored.head.fields.contains(.noVarySearch)
        let claim = received.claim(on: entry.key, nominated: stored.nominated)
        guard cache.writer.holds(lookup.generation, for: lookup.key.target, answersQueries: answersQueries) else {
            // The response itself stays as it is; nothing older than this update may replace it.
            _ = cache.writer.order.enter(claim)
            return .refused
        }
        var description = entry.description
        description.metadata = stored.encoded
        description.uselessAfter = StoreInstant(stored.uselessAfter(cache.options))
        let ownTags: Set<String>? =
            description.tags.isEmpty
            ? [] : cache.response(of: entry).map { cache.ownTags(description.tags, of: $0) }
        if let ownTags { description.tags = cache.tags(ownTags, for: stored) }
        let equivalent = await noteSearchVariance(
            of: stored,
            under: entry.key,
            until: description.uselessAfter,
            context
        )
        // In a task of its own: the update is everyone's, and the last caller may leave now.
        let now = context.clock.timestamp
        let outcome = await context.background.start { [cache, description] () -> Result<StoredEntry?, StoreError> in
            do throws(StoreError) {
                return .success(try await cache.writer.freshen(entry, with: description, claim: claim, now: now))
            } catch {
                return .failure(error)
            }
        }.value
        do throws(StoreError) {
            guard let freshened = try outcome.get() else { return .overtaken }
            if !equivalent.isEmpty { await removeOlder(beside: freshened, by: received, in: context) }
            return .written(freshened)
        } catch {
            storeFailed(error, context: context)
            // What the update says cannot be kept, so the response must not be used by its former fields.
            if error.code != .readOnly { await remove(entry, context: context) }
            return .refused
        }
    }

    /// What an update that was written first has left of a stored response, if the one that `claim` is for was requested later; nil if
    /// the response is gone, or another one is in its place.
    private func updated(
        _ entry: StoredEntry,
        claim: ExchangeOrder.Claim,
        by received: ReceivedExchange,
        in context: CallContext
    ) async -> (entry: StoredEntry, existing: Admission.Existing)? {
        guard cache.writer.order.isNewest(claim) else { return nil }
        let next: StoredEntry?
        do throws(StoreError) {
            next = try await cache.successor(of: entry, now: context.clock.timestamp)
        } catch {
            storeFailed(error, context: context)
            return nil
        }
        guard let next, next.version != entry.version, next.bodyLength == entry.bodyLength,
            next.storedAt == entry.storedAt, let old = cache.response(of: entry), let new = cache.response(of: next),
            old.head.isSameRepresentation(as: new.head)
        else { return nil }
        return (next, received.existing(new, in: next))
    }

    /// Whether a candidate is stored for the lookup's own values of its nominated fields.
    func matches(_ candidate: CacheCandidate, lookup: CacheLookup) -> Bool {
        candidate.isOwn && candidate.stored.nominated.matches(lookup.head.fields, secret: cache.store.secret)
    }

    /// Gives up storing a response: older ones are no longer written, and stored ones are removed, since the most recent response
    /// must not depend on what a cache happened to lose (RFC 9111 §4).
    func giveUp(_ claim: ExchangeOrder.Claim, of received: ReceivedExchange, in context: CallContext) async {
        _ = cache.writer.order.enter(claim)
        await removeOlder(than: claim.order, under: claim.key, for: received.lookup, in: context)
    }

    /// Handles a store that failed to take a response.
    func storingFailed(
        _ error: StoreError,
        entry: AdmittedEntry,
        of received: ReceivedExchange,
        in context: CallContext
    ) async {
        storeFailed(error, context: context)
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

    /// Removes what is stored for a request and was requested no later than `order`: there is a newer response, or there was one
    /// that could not be stored, and an older one must not be used again (RFC 9111 §4).
    ///
    /// - Parameters:
    ///   - key: of the newer response: this removes entries in its partition and in the requester's.
    ///   - newer: stays.
    func removeOlder(
        than order: HybridTimestamp,
        under key: StoreKey,
        except newer: StoredEntry? = nil,
        for lookup: CacheLookup,
        in context: CallContext
    ) async {
        let stored = await candidates(for: lookup, context)
            .filter { $0.stored.requestOrder <= order && matches($0, lookup: lookup) }
        await remove(stored, supersededUnder: key, except: newer, for: lookup, in: context)
    }

    /// Removes the stored responses for a request that a newer response replaces.
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
            if entry.key != newer?.key || entry.variant != newer?.variant { await remove(entry, context: context) }
        }
    }

    func remove(_ entry: StoredEntry, claim: ExchangeOrder.Claim? = nil, context: CallContext) async {
        do throws(StoreError) {
            try await cache.writer.remove(entry, claim: claim)
        } catch {
            storeFailed(error, context: context)
        }
    }

    func storeFailed(_ error: StoreError, context: CallContext) {
        if [.superseded, .closed, .tooLarge, .cancelled].contains(error.code) { return }
        // A failure of the store, whatever was requested, so it has no origin.
        CallMetrics(cache.meter, target: nil, history: LookupHistory(begun: context.clock.now), clock: context.clock)
            .count {
                $0.storeFailures += 1
            }
        context.emit(.storeFailed) { event in
            event.error = error
            event.detail = error.code.description
        }
    }
}

extension ResponseHead {
    /// Whether two heads of one stored response, before and after an update, describe the same representation.
    fileprivate func isSameRepresentation(as other: ResponseHead) -> Bool {
        if let tag = entityTag ?? other.entityTag { return tag == entityTag && tag == other.entityTag }
        return fields[.lastModified] == other.fields[.lastModified]
    }
}

/// Finds what was stored for an equivalent query, according to the response's own No-Vary-Search.
extension CachingHook {
    /// The keys of URIs whose stored responses may also answer for `key`; called after the exact lookup has found nothing.
    func equivalentKeys(of key: CacheKey, _ context: CallContext) async -> [CacheKey] {
        guard cache.writer.mayHoldSearchVariance, let keys = SearchVarianceKeys(key) else { return [] }
        var found: [CacheKey] = []
        for place in await entries(for: StoreKey(keys.ofPath.framed), context) {
            guard let value = String(validating: place.description.metadata.array, as: UTF8.self) else { continue }
            for alias in await entries(for: StoreKey(keys.ofQuery(value).framed), context) {
                guard let text = String(validating: alias.description.metadata.array, as: UTF8.self),
                    let stored = keys.ofURI(text), stored != key, !found.contains(stored)
                else { continue }
                found.append(stored)
            }
        }
        return found
    }

    /// Whether a stored response says itself that it answers the lookup's query.
    func isEquivalent(_ entry: StoredEntry, stored: StoredResponse, lookup: CacheLookup) -> Bool {
        guard let parts = CacheKey.Parts(framed: entry.key.bytes), let target = try? TargetURI(parts.target) else {
            return false
        }
        return NoVarySearch(stored.head.fields).isEquivalent(target, to: lookup.key.target)
    }

    /// Records for which queries a response also answers that is about to be stored or updated.
    ///
    /// If it is not stored after all, the record leads to nothing and does no harm. If its content is in its key, lookups of other
    /// queries do not find it, but invalidating another query invalidates it too.
    ///
    /// - Returns: the keys of the URIs under which other responses for the same queries are stored.
    func noteSearchVariance(
        of stored: StoredResponse,
        under storeKey: StoreKey,
        until uselessAfter: StoreInstant,
        _ context: CallContext
    ) async -> [CacheKey] {
        guard let value = stored.head.fields[.noVarySearch], value.utf8.count <= SearchVarianceKeys.longestValue,
            !NoVarySearch(fieldValue: value).isNone
        else { return [] }
        guard let parts = CacheKey.Parts(framed: storeKey.bytes), let target = try? TargetURI(parts.target) else {
            return []
        }
        // Key fields are part of it, but not the content of a QUERY.
        let type = parts.methodGroup == RequestMethod.get.rawValue ? parts.contentType : ""
        let key = CacheKey(partition: parts.partition, method: .get, target: target, contentType: type)
        guard let keys = SearchVarianceKeys(key) else { return [] }
        cache.writer.noteSearchVariance()
        let place = StoreKey(keys.ofPath.framed)
        let variant = StoreKey(Array(value.utf8))
        if !(await entries(for: place, context)).contains(where: { $0.variant == variant }) {
            await write(
                to: place,
                variant: variant,
                description: EntryDescription(metadata: ByteChunk(copying: value.utf8)),
                context: context
            )
        }
        let text = key.target.canonical
        let alias = EntryDescription(
            metadata: ByteChunk(copying: text.utf8),
            uselessAfter: uselessAfter
        )
        let query = keys.ofQuery(value)
        let others = await entries(for: StoreKey(query.framed), context)
            .compactMap { String(validating: $0.description.metadata.array, as: UTF8.self) }
            .filter { $0 != text }
            .compactMap { keys.ofURI($0) }
        if others.count >= CachingHook.mostEquivalents {
            // The new response answers all of them, and a lookup must not have to try many.
            do throws(StoreError) {
                try await cache.writer.invalidate(others + [query], now: context.clock.timestamp)
            } catch {
                storeFailed(error, context: context)
            }
        }
        await write(
            to: StoreKey(query.framed),
            variant: StoreKey(Array(text.utf8)),
            description: alias,
            context: context
        )
        return others
    }

    /// How many URIs are recorded whose responses answer the same queries.
    private static var mostEquivalents: Int { 8 }

    private func write(
        to key: StoreKey,
        variant: StoreKey,
        description: EntryDescription,
        context: CallContext
    ) async {
        do throws(StoreError) {
            try await cache.writer.put(
                key,
                variant: variant,
                description: description,
                body: ByteChunk(),
                now: context.clock.timestamp
            )
        } catch {
            storeFailed(error, context: context)
        }
    }
}
