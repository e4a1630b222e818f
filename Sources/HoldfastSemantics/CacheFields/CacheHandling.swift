// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// What a cache did with one request, as Cache-Status tells it (RFC 9211 §2).
public struct CacheHandling: Sendable, Hashable {
    /// How the request was answered; closed, since RFC 9211 knows no further way.
    public enum Outcome: Sendable, Hashable {
        /// From the store, without waiting for the origin.
        case hit
        /// From the store, after the origin said 304.
        case revalidated
        /// By the response to an equal request.
        case collapsed
        /// By the origin.
        case forwarded
        /// By the origin, the store having been passed by.
        case bypassed
    }

    /// How the request was answered.
    public var outcome: Outcome

    /// Why.
    public var reason: CacheReason

    /// The status that came from the next hop, where another one was handed up; nil where none came or it is the same.
    public var originStatus: StatusCode?

    /// The seconds that the response stays fresh, negative once it is stale; nil where that is not known.
    public var freshnessLeft: Int64?

    /// Whether the response of the origin was stored.
    public var isStored: Bool

    /// Creates a description; what is left out is not known.
    public init(
        _ outcome: Outcome,
        _ reason: CacheReason,
        originStatus: StatusCode? = nil,
        freshnessLeft: Int64? = nil,
        isStored: Bool = false
    ) {
        self.outcome = outcome
        self.reason = reason
        self.originStatus = originStatus
        self.freshnessLeft = freshnessLeft
        self.isStored = isStored
    }

    /// The entry of the cache with this name.
    ///
    /// What stood in for a failure of the origin was forwarded first, so it is no hit (RFC 9211 §2.1); what is served while
    /// a revalidation runs in the background is one.
    ///
    /// - Parameters:
    ///   - cache: the cache's name.
    ///   - key: a rendering of the key; nil, the default, shows none.
    public func entry(of cache: String, key: String? = nil) -> CacheStatusEntry {
        var entry = CacheStatusEntry(cache: cache, timeToLive: freshnessLeft, key: key)
        entry.isHit = outcome == .hit && !standsIn
        if !entry.isHit {
            entry.forward = forwardReason
            entry.forwardStatus = outcome == .revalidated ? .notModified : originStatus
            entry.isStored = isStored
            entry.isCollapsed = outcome == .collapsed
        }
        if !CacheHandling.told.contains(reason) { entry.detail = reason.detail }
        return entry
    }

    private var standsIn: Bool {
        reason == .staleIfError || reason == .disconnected || reason == .patience
    }

    private var forwardReason: CacheStatusEntry.ForwardReason {
        switch reason {
        case .method: .method
        // That somebody else asked for the URI is nobody's business downstream.
        case .notStored, .otherPrincipal: .uriMiss
        case .noVariant: .varyMiss
        case .stale, .softPurged, .storeLostPower: .stale
        case .partial: .partial
        case .mustValidate: (freshnessLeft ?? 1) > 0 ? .request : .stale
        case _ where standsIn: (freshnessLeft ?? 0) > 0 ? .request : .stale
        default: outcome == .bypassed ? .bypass : .miss
        }
    }

    /// Reasons that the parameters tell without a word more.
    private static let told: Set<CacheReason> = [
        .fresh, .method, .notStored, .otherPrincipal, .noVariant, .stale, .partial,
    ]
}

extension CacheReason {
    /// What people are told of it: the code, where that says enough.
    fileprivate var detail: String {
        self == .storeLostPower ? "the store lost power" : code
    }
}
