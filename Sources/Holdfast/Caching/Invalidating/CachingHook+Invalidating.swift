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
    /// - Returns: the targets that were invalidated, as they stand in keys and as often as they were counted.
    func invalidate(by response: Response, _ lookup: CacheLookup, _ context: CallContext) async -> [TargetURI] {
        guard !lookup.onlyAsks else { return [] }
        let targets = keyTargets(
            Invalidation.targets(request: lookup.head, response: response.head, mayBeApplied: context.mayBeApplied)
        )
        var counted: [TargetURI] = []
        for target in targets { counted += await invalidate(target, lookup, context) }
        return counted
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
        for target in keyTargets(targets) { _ = await invalidate(target, lookup, context) }
    }

    private func keyTargets(_ targets: [TargetURI]) -> [TargetURI] {
        var known: Set<TargetURI> = []
        return targets.map { cache.options.keyTarget(of: $0) }.filter { known.insert($0).inserted }
    }

    /// - Returns: the targets that were counted as invalidated, each once.
    private func invalidate(_ target: TargetURI, _ lookup: CacheLookup, _ context: CallContext) async -> [TargetURI] {
        // Before anything is waited for: what is under way must not be stored, even where the store fails.
        cache.writer.invalidations.note(target)
        var counted = [target]
        for partition in Set([lookup.principal, ""]) {
            let key = CacheKey(partition: partition, method: .get, target: target)
            // A response that answers for this URI too is stored under another one.
            let equivalent = await equivalentKeys(of: key, context)
            for other in equivalent where !counted.contains(other.target) {
                cache.writer.invalidations.note(other.target)
                counted.append(other.target)
            }
            do throws(StoreError) {
                try await cache.writer.invalidate([key] + equivalent)
                guard cache.holdsContentKeys else { continue }
                for target in [target] + equivalent.map(\.target) {
                    for method: RequestMethod in [.query, .post] {
                        let prefix = CacheKey.prefix(partition: partition, methodGroup: method, target: target)
                        try await cache.writer.purge(.keyPrefix(prefix), now: context.clock.timestamp)
                    }
                }
            } catch {
                storeFailed(error, context)
            }
        }
        return counted
    }
}
