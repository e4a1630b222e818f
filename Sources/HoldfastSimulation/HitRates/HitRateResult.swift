// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// What one policy at one size would have hit.
///
/// Requests of the warm-up are in none of the counts. Each other one is exactly one of: a hit, a revalidation, or a miss.
public struct HitRateResult: Sendable, Hashable {
    /// The policy's name.
    public let policy: String
    /// Bytes of the cache.
    public let capacity: Int
    /// Requests replayed, and those that were hits.
    public internal(set) var requests = 0
    public internal(set) var hits = 0
    /// Requests whose copy was there but past its life; none where the requests say nothing of lives.
    public internal(set) var revalidations = 0
    /// Bytes of all requests, of those that were hits, and of those that were revalidations.
    public internal(set) var requestedBytes = 0
    public internal(set) var hitBytes = 0
    public internal(set) var revalidatedBytes = 0
    /// Entries that left because space was needed; one that was never admitted is none, nor is one that a newer version replaced.
    public internal(set) var evictions = 0
    /// Bytes of the entries admitted.
    public internal(set) var writtenBytes = 0
    /// Bytes copied within the cache in order to keep them.
    public internal(set) var movedBytes = 0

    /// Nothing counted yet.
    public init(policy: String, capacity: Int) {
        self.policy = policy
        self.capacity = capacity
    }

    /// Requests that were neither hits nor revalidations.
    public var misses: Int { requests - hits - revalidations }

    /// Hits of all requests; 0 when there were none.
    public var objectHitRatio: Double { ratio(hits, requests) }

    /// Bytes hit of all bytes requested; 0 when there were none.
    public var byteHitRatio: Double { ratio(hitBytes, requestedBytes) }

    /// Bytes written, those copied within the cache included, for each byte requested; 0 when there were none.
    public var writesPerByte: Double { ratio(writtenBytes + movedBytes, requestedBytes) }

    /// Bytes written, those copied within the cache included, for each byte admitted; 0 when there were none.
    public var writeAmplification: Double { ratio(writtenBytes + movedBytes, writtenBytes) }

    private func ratio(_ part: Int, _ whole: Int) -> Double {
        whole > 0 ? Double(part) / Double(whole) : 0
    }
}
