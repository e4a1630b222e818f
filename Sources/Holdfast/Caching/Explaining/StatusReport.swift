// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastSemantics

/// Writes what a cache did into the responses it hands up, for those who read fields rather than properties.
struct StatusReport: Sendable {
    /// The cache's name.
    let name: String
    /// Whether the key is shown too.
    let showsKey: Bool

    /// A report by these options; nil where the cache has no name to sign with.
    init?(_ options: CacheOptions) {
        guard let name = options.cacheName else { return nil }
        self.name = name
        showsKey = options.showsKeyInCacheStatus
    }

    /// Appends this cache's entry to what upstream said (RFC 9211 §2).
    ///
    /// What upstream said of a stored response stays with it, since it tells how that response came here. Of this cache
    /// nothing is in there: a response is stored before its entry is written. What was made on this side gets none.
    func sign(_ response: inout Response, _ key: CacheKey?) {
        guard let handling = response.cacheDecision?.handling else { return }
        let entry = handling.entry(of: name, key: showsKey ? key?.description : nil)
        response.fields[.cacheStatus] = CacheStatus.appending(entry, to: response.fields[.cacheStatus])
    }
}

extension CacheDecision {
    /// The decision in the words of RFC 9211; nil where nothing from a store or an origin was handed up.
    var handling: CacheHandling? {
        let way: CacheHandling.Outcome
        switch outcome {
        case .hit: way = .hit
        case .revalidated: way = .revalidated
        case .collapsed: way = .collapsed
        case .miss: way = .forwarded
        case .bypass: way = .bypassed
        case .unsatisfiable: return nil
        }
        return CacheHandling(
            way,
            reason,
            originStatus: originStatus,
            freshnessLeft: freshnessLeft,
            isStored: storage == .stored
        )
    }
}
