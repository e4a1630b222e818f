// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastSemantics
internal import HoldfastStorage

/// What responses and failures make of stored responses that they do not answer.
///
/// Each partition is a cache of its own: a request invalidates in its own and in the shared one, and another principal's
/// entries stay, as they would in that principal's own browser.
extension CachingHook {
    /// Invalidates what an unsafe request may have changed (RFC 9111 §4.4).
    ///
    /// - Returns: the targets that were invalidated, as they stand in keys.
    func invalidate(by response: Response, _ lookup: CacheLookup, _ context: CallContext) async -> [TargetURI] {
        guard !lookup.onlyAsks else { return [] }
        let targets = keyTargets(
            Invalidation.targets(request: lookup.head, response: response.head, mayBeApplied: context.mayBeApplied)
        )
        for target in targets { await invalidate(target, lookup, context) }
        return targets
    }

    /// Invalidates what an unsafe request may have changed although no response came.
    func invalidate(
        by failure: AttemptFailure,
        wasSent: Bool,
        _ lookup: CacheLookup,
        _ context: CallContext
    ) async {
        guard !lookup.onlyAsks else { return }
        let targets = Invalidation.targets(
            request: lookup.head,
            failure: failure,
            wasSent: wasSent,
            mayBeApplied: context.mayBeApplied
        )
        for target in keyTargets(targets) { await invalidate(target, lookup, context) }
    }

    private func keyTargets(_ targets: [TargetURI]) -> [TargetURI] {
        var known: Set<TargetURI> = []
        return targets.map { cache.options.keyTarget(of: $0) }.filter { known.insert($0).inserted }
    }

    private func invalidate(_ target: TargetURI, _ lookup: CacheLookup, _ context: CallContext) async {
        cache.invalidations.note(target)
        for partition in Set([lookup.principal, ""]) {
            let key = CacheKey(partition: partition, method: .get, target: target)
            // A response that answers for this URI too is stored under another one.
            let equivalent = await equivalentKeys(of: key, context)
            for other in equivalent { cache.invalidations.note(other.target) }
            do throws(StoreError) {
                for key in [key] + equivalent { try await cache.store.invalidate(StoreKey(key.framed)) }
                guard cache.holdsContentKeys else { continue }
                for method: RequestMethod in [.query, .post] {
                    let prefix = CacheKey.prefix(partition: partition, methodGroup: method, target: target)
                    try await cache.store.purge(.keyPrefix(prefix), now: StoreInstant(context.clock.timestamp))
                }
            } catch {
                storeFailed(error, context)
            }
        }
    }
}
