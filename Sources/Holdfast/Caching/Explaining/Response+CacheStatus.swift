// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import HoldfastSemantics

extension Response {
    /// How each cache on the way handled the request, the one closest to the origin first (RFC 9211).
    ///
    /// Read from the Cache-Status field at each reading, in linear time: entries of caches upstream, and last the one of this
    /// side's cache where `CacheOptions.cacheName` is set. nil where the field is missing or malformed. Anyone on the way
    /// can write the field, so it is for people and metrics; ``cacheDecision`` is what this side knows for certain.
    public var cacheStatus: CacheStatus? {
        CacheStatus(fields)
    }
}
