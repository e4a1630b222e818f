// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastSemantics
internal import HoldfastStorage

/// The effects of responses and failures on other stored responses.
///
/// Each partition is a separate cache: a request invalidates in its own and in the shared one. Another principal's entries stay, as
/// they would in that principal's own browser.
extension CachingHook {
    /// Invalidates what an unsafe request may have changed (RFC 9111 §4.4).
    ///
    /// - Returns: the targets that were invalidated, as in keys and as often as they were counted.
    func invalidate(by response: Response, lookup: CacheLookup, context: CallContext) async -> [TargetURI] {
        guard !lookup.onlyAsks else { return [] }
        let targets = keyTargets(
            Invalidation.targets(request: lookup.head, response: response.head, mayBeApplied: context.mayBeApplied)
        )
        var counted: [TargetURI] = []
        for target in targets { counted += await invalidate(target, lookup: lookup, context: context) }
        return counted
    }

    /// Invalidates what an unsafe request may have changed although no response arrived.
    func invalidate(
        by failure: AttemptFailure,
        wasSent: Bool,
        lookup: CacheLookup,
        context: CallContext
    ) async {
        guard !lookup.onlyAsks else { return }
        let targets = Invalidation.targets(
            request: lookup.head,
            failure: failure,
            wasSent: wasSent,
            mayBeApplied: context.mayBeApplied
        )
        for target in keyTargets(targets) { _ = await invalidate(target, lookup: lookup, context: context) }
    }

    private func keyTargets(_ targets: [TargetURI]) -> [TargetURI] {
        var known: Set<TargetURI> = []
        return targets.map { cache.options.keyTarget(of: $0) }.filter { known.insert($0).inserted }
    }

    /// - Returns: the targets that were counted as invalidated, each once.
    private func invalidate(_ target: TargetURI, lookup: CacheLookup, context: CallContext) async -> [TargetURI] {
        // Before anything is awaited: responses in progress must not be stored, even if the store fails.
        cache.writer.invalidations.note(.target(target))
        var counted = [target]
        for partition in Set([lookup.principal, ""]) {
            let key = CacheKey(partition: partition, method: .get, target: target)
            // A response that also answers this URI may be stored under another one. A cancelled task could not read where.
            let equivalent = await context.background.start { await equivalentKeys(of: key, context) }.value
            for other in equivalent where !counted.contains(other.target) {
                cache.writer.invalidations.note(.target(other.target))
                counted.append(other.target)
            }
            let selections = ([target] + equivalent.map(\.target)).flatMap {
                self.selections(of: $0, partition: partition)
            }
            do throws(StoreError) {
                try await cache.writer.invalidate([key] + equivalent, and: selections, now: context.clock.timestamp)
            } catch {
                storeFailed(error, context: context)
            }
        }
        return counted
    }

    /// Selects what is stored for a target under keys with more parts: content, or the values of key fields.
    private func selections(of target: TargetURI, partition: String) -> [PurgeSelection] {
        func prefix(_ method: RequestMethod) -> [UInt8] {
            CacheKey.prefix(partition: partition, methodGroup: method, target: target)
        }
        var selections: [PurgeSelection] = []
        if !cache.options.keyFields(for: target).isEmpty {
            let prefix = prefix(.get)
            // Entries that lead to equivalent queries are not responses, and also lead to those of other queries.
            selections.append(
                .matching { $0.key.bytes.starts(with: prefix) && !SearchVarianceKeys.isOne($0.key.bytes) }
            )
        }
        if cache.writer.mayHoldContentKeys {
            selections += [RequestMethod.query, .post].map { .keyPrefix(prefix($0)) }
        }
        return selections
    }
}

/// What a response says about other stored responses of its origin.
extension CachingHook {
    /// Removes the groups that an unsafe request has invalidated (RFC 9875 §3), and everything of the origin if the response asks
    /// for that (Clear Site Data §3.1).
    ///
    /// RFC 9875 is about what one cache has stored, and each partition is a separate cache: this affects the principal's and the
    /// shared one, as in RFC 9111 §4.4. Other groups of a removed response are not affected (RFC 9875 §2.2).
    func sweep(by response: Response, lookup: CacheLookup, context: CallContext) async {
        // A response from a store, here or in a pipeline below, took effect when it came from the origin.
        guard !response.source.isFromStore else { return }
        let partitions: Set<String> = [lookup.principal, ""]
        let target = lookup.head.target
        if cache.options.honorsClearSiteData, ClearSiteData(response.fields).clearsCache(of: target) {
            await purge(context) { entry in
                guard let key = CacheKey.Parts(framed: entry.key.bytes) else { return false }
                return partitions.contains(key.partition)
                    && (try? TargetURI(key.target))?.isSameOrigin(as: target) ?? false
            }
        }
        guard !lookup.onlyAsks, response.fields.contains(.cacheGroupInvalidation) else { return }
        let groups = CacheGroups.invalidated(request: lookup.head, response: response.head)
        let words = GroupTags(of: target, secret: cache.store.secret).words(invalidating: groups)
        guard !words.isEmpty else { return }
        await purge(context) { entry in
            guard !entry.description.tags.isDisjoint(with: words) else { return false }
            return CacheKey.Parts(framed: entry.key.bytes).map { partitions.contains($0.partition) } ?? false
        }
    }

    private func purge(_ context: CallContext, predicate: @escaping @Sendable (StoredEntry) -> Bool) async {
        // Responses in progress may belong to the group or the origin; that shows only when they arrive.
        cache.writer.invalidations.note(.all)
        do throws(StoreError) {
            try await cache.writer.purge(.matching(predicate), now: context.clock.timestamp)
        } catch {
            storeFailed(error, context: context)
        }
    }
}

extension HTTPCache {
    /// The tags for storing a response: the caller's, and those of its groups as far as there is room.
    func tags(_ own: Set<String>, for stored: StoredResponse) -> Set<String> {
        let own = own.union(writtenTags(stored))
        let groups = CacheGroups(stored.head.fields)
        guard !groups.isEmpty else { return own }
        // The store gets no more than it keeps, since it would choose by itself what to drop.
        let room = HTTPCache.mostTags - own.count
        let words = GroupTags(of: stored.target, secret: store.secret).words(for: groups, room: max(room, 1))
        guard room < 1 else { return own.union(words) }
        return Set(own.sorted().prefix(HTTPCache.mostTags - 1)).union(words)
    }

    /// The caller's own tags of an entry.
    func ownTags(_ tags: Set<String>, of stored: StoredResponse) -> Set<String> {
        let tags = tags.subtracting(writtenTags(stored))
        let groups = CacheGroups(stored.head.fields)
        guard !groups.isEmpty else { return tags }
        let words = GroupTags(of: stored.target, secret: store.secret)
        return tags.subtracting(words.words(invalidating: groups))
    }

    /// The tags in the response itself, from the fields that the options name.
    private func writtenTags(_ stored: StoredResponse) -> Set<String> {
        var tags: Set<String> = []
        for name in options.tagFields {
            for value in stored.head.fields.values(of: name) {
                let words = value.split { $0 == " " || $0 == "," || $0 == "\t" }
                for word in words.prefix(HTTPCache.mostTags) { tags.insert(String(word)) }
            }
        }
        return tags
    }

    /// How many tags a store keeps with an entry (``EntryDescription/tags``).
    private static var mostTags: Int { 64 }
}
