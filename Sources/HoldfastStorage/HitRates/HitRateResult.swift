// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// What one policy at one size would have hit.
public struct HitRateResult: Sendable, Hashable {
    /// The policy's name.
    public let policy: String
    /// Bytes of the cache.
    public let capacity: Int
    /// Requests replayed, and those that were hits.
    public internal(set) var requests = 0
    public internal(set) var hits = 0
    /// Bytes of all requests, and of those that were hits.
    public internal(set) var requestedBytes = 0
    public internal(set) var hitBytes = 0
    /// Entries that left because space was needed; one that was never admitted is none.
    public internal(set) var evictions = 0
    /// Bytes of the entries admitted.
    public internal(set) var writtenBytes = 0
    /// Bytes copied within the cache in order to keep them.
    public internal(set) var movedBytes = 0

    init(policy: String, capacity: Int) {
        self.policy = policy
        self.capacity = capacity
    }

    /// Hits of all requests; 0 when there were none.
    public var objectHitRatio: Double { requests > 0 ? Double(hits) / Double(requests) : 0 }

    /// Bytes hit of all bytes requested; 0 when there were none.
    public var byteHitRatio: Double { requestedBytes > 0 ? Double(hitBytes) / Double(requestedBytes) : 0 }
}
