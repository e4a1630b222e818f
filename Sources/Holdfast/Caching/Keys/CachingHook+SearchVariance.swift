// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastSemantics
internal import HoldfastStorage

/// Finds what was stored for another query that means the same, by the response's own No-Vary-Search.
extension CachingHook {
    /// The key of a URI whose stored response may answer for `key` as well; asked once the exact look-up has found nothing.
    func equivalentKeys(of key: CacheKey, _ context: CallContext) async -> [CacheKey] {
        guard cache.holdsSearchVariance, let keys = SearchVarianceKeys(key) else { return [] }
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

    /// Whether a stored response says itself that it answers for the look-up's query.
    func isEquivalent(_ entry: StoredEntry, _ stored: StoredResponse, _ lookup: CacheLookup) -> Bool {
        guard let parts = CacheKey.Parts(framed: entry.key.bytes), let target = try? TargetURI(parts.target) else {
            return false
        }
        return NoVarySearch(stored.head.fields).isEquivalent(target, lookup.key.target)
    }

    /// Remembers for which queries a response that is about to be stored, or given other fields, answers too.
    ///
    /// Should it not be stored after all, what is remembered leads to nothing and does no harm. Where its content is in its key no
    /// look-up of another query finds it, but what makes the other query invalid makes it invalid too.
    ///
    /// - Returns: the keys of the URIs under which others are stored that answer for the same queries.
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
        let key = CacheKey(partition: parts.partition, method: .get, target: target)
        guard let keys = SearchVarianceKeys(key) else { return [] }
        cache.noteSearchVariance()
        let place = StoreKey(keys.ofPath.framed)
        let variant = StoreKey(Array(value.utf8))
        if !(await entries(for: place, context)).contains(where: { $0.variant == variant }) {
            await write(to: place, variant, EntryDescription(metadata: ByteChunk(copying: value.utf8)), context)
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
            // What comes now answers for all of them, and a look-up must not have to go through many.
            do throws(StoreError) {
                try await cache.writer.invalidate(others + [query])
            } catch {
                storeFailed(error, context)
            }
        }
        await write(to: StoreKey(query.framed), StoreKey(Array(text.utf8)), alias, context)
        return others
    }

    /// How many URIs are remembered whose responses answer for the same queries.
    private static var mostEquivalents: Int { 8 }

    private func write(
        to key: StoreKey,
        _ variant: StoreKey,
        _ description: EntryDescription,
        _ context: CallContext
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
            storeFailed(error, context)
        }
    }
}
