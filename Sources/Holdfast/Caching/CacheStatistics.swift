// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// What a cache did, counted since it was made; docs/measuring-hit-rates.md defines every figure.
///
/// Each request that reached the cache is exactly one of: hit, stale hit, revalidated, miss, bypass; or still in flight.
public struct CacheStatistics: Sendable, Hashable {
    /// Calls (hops, where redirects were followed) that reached the cache.
    public internal(set) var requests = 0
    /// Answered from the store, fresh, without asking the origin.
    public internal(set) var hits = 0
    /// Answered from the store although stale.
    public internal(set) var staleHits = 0
    /// Answered with a stored body after the origin said 304.
    public internal(set) var revalidated = 0
    /// Looked up and not answered from the store.
    public internal(set) var misses = 0
    /// Not looked up: another method, `reload`, a URL that is no key.
    public internal(set) var bypasses = 0
    /// Responses whose storing was completed.
    public internal(set) var stored = 0
    /// Store failures that were treated as misses.
    public internal(set) var storeFailures = 0
    /// Body bytes delivered by hits, stale ones included.
    public internal(set) var hitBytes = 0
    /// Body bytes delivered from the store after a 304.
    public internal(set) var revalidatedBytes = 0
    /// Body bytes delivered from the network to calls that were looked up.
    public internal(set) var networkBytes = 0

    /// All zero.
    public init() {}

    /// Body bytes that did not have to come over the network.
    public var bytesFromStore: Int { hitBytes + revalidatedBytes }

    /// Hits, stale ones included, of all requests that were looked up; 0 when there were none.
    public var hitRatio: Double {
        ratio(hits + staleHits, of: requests - bypasses)
    }

    /// The share of delivered body bytes that hits delivered; 0 when there were none.
    public var byteHitRatio: Double {
        ratio(hitBytes, of: hitBytes + revalidatedBytes + networkBytes)
    }

    private func ratio(_ part: Int, of whole: Int) -> Double {
        whole > 0 ? Double(part) / Double(whole) : 0
    }
}
