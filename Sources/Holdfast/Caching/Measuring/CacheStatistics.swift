// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import HoldfastSemantics

/// What a cache did: since it was made, in a window of time, or for one origin; docs/measuring-hit-rates.md defines every figure.
///
/// Each request that reached the cache is exactly one of: hit, stale hit (accepted, while revalidating, or on error), revalidated,
/// collapsed, miss, bypass; or still in flight.
public struct CacheStatistics: Sendable, Hashable {
    /// Calls (hops, where redirects were followed) that reached the cache.
    public internal(set) var requests = 0
    /// Answered from the store, fresh, without asking the origin.
    public internal(set) var hits = 0
    /// Answered from the store although stale, because the caller accepts that.
    public internal(set) var staleHits = 0
    /// Answered from the store although stale, while a revalidation ran in the background.
    public internal(set) var revalidatingHits = 0
    /// Answered from the store although stale, because the origin failed or took too long.
    public internal(set) var errorHits = 0
    /// Answered with a stored body after the origin said 304.
    public internal(set) var revalidated = 0
    /// Answered by the exchange of another call.
    public internal(set) var collapsed = 0
    /// Looked up and not answered from the store.
    public internal(set) var misses = 0
    /// Not looked up: another method, `reload`, a URL that is no key.
    public internal(set) var bypasses = 0
    /// Responses whose storing was completed.
    public internal(set) var stored = 0
    /// Store failures that were treated as misses.
    public internal(set) var storeFailures = 0
    /// Revalidations begun in the background, and those of them that failed.
    public internal(set) var backgroundRevalidations = 0
    public internal(set) var backgroundFailures = 0
    /// How often each reason decided, fresh hits apart: why the origin was asked, or why something stale was used.
    public internal(set) var reasons: [CacheReason: Int] = [:]
    /// How often each reason kept a response from being stored.
    public internal(set) var notStored: [CacheReason: Int] = [:]
    /// Body bytes delivered by hits, stale ones included.
    public internal(set) var hitBytes = 0
    /// Body bytes delivered from the store after a 304.
    public internal(set) var revalidatedBytes = 0
    /// Body bytes delivered from the exchanges of other calls.
    public internal(set) var collapsedBytes = 0
    /// Body bytes delivered from the network to calls that were looked up.
    public internal(set) var networkBytes = 0
    /// What hits, stale ones included, spared their callers of waiting: for each the time that the origin had taken to answer
    /// with what is stored, less the time the hit took.
    ///
    /// The origin's time is that from sending the request to the response head, of the exchange that fetched the stored response
    /// or last confirmed it; no less than nothing counts, and no more than a minute, since a clock that was set may lie between.
    public internal(set) var timeSaved: Duration = .zero

    /// All zero.
    public init() {}

    /// Body bytes that came from the store.
    public var bytesFromStore: Int { hitBytes + revalidatedBytes }

    /// Body bytes that callers were given and that did not come over the network for them: from the store, or from the exchanges of
    /// other calls.
    public var bytesSaved: Int { bytesFromStore + collapsedBytes }

    /// Hits, the stale ones of all kinds included.
    public var allHits: Int { hits + staleHits + revalidatingHits + errorHits }

    /// Hits, stale ones included, of all requests that were looked up; 0 when there were none.
    public var hitRatio: Double { ratio(allHits, of: requests - bypasses) }

    /// Requests answered with a stored body after the origin said 304, of all requests that were looked up; 0 when there were
    /// none.
    public var revalidationRatio: Double { ratio(revalidated, of: requests - bypasses) }

    /// The share of delivered body bytes that hits delivered; 0 when there were none.
    public var byteHitRatio: Double {
        ratio(hitBytes, of: hitBytes + revalidatedBytes + collapsedBytes + networkBytes)
    }

    private func ratio(_ part: Int, of whole: Int) -> Double {
        whole > 0 ? Double(part) / Double(whole) : 0
    }
}
