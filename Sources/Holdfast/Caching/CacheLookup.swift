// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import HoldfastSemantics
internal import HoldfastStorage

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// What a cache looks a request up by.
struct CacheLookup: Sendable {
    /// The request as it arrived at the cache, implicit fields included.
    let head: RequestHead
    /// The digest that names the partition; empty without credentials.
    let principal: String
    let directive: CacheDirective
    /// The key in the principal's partition.
    let key: CacheKey
    /// The key in the shared partition, where that may be read as well.
    let sharedKey: CacheKey?
    /// Why the store is not asked; nil where it is.
    let bypassReason: CacheReason?
    /// How often the target had been invalidated by then: a response that was under way since may be older than the reason.
    var mark: InvalidationLog.Mark
    /// How many flights of the cache had ended by then, and what came of earlier look-ups of the same call.
    let landings: UInt64
    let trail: LookTrail

    init?(_ request: URLRequest, _ context: CallContext, _ cache: HTTPCache, _ trail: LookTrail = LookTrail()) {
        guard let head = RequestHead(request, fields: context.presentedFields(of: request)) else { return nil }
        self.head = head
        self.trail = trail
        landings = cache.flights.landings
        principal = cache.principal(of: head.fields, to: head.target, context)
        directive = CacheDirective(context.options.cache, request.cachePolicy)
        bypassReason =
            ReuseDecision.bypassReason(request: head, directive: directive) ?? (context.body.isNone ? nil : .content)
        mark = cache.invalidations.mark(of: head.target)
        // What a POST leaves behind answers a later GET, if anything (RFC 9110 §9.3.3).
        let method = head.method == .post ? .get : head.method
        key = CacheKey(partition: principal, method: method, target: head.target)
        sharedKey =
            cache.options.mode == .shared && !principal.isEmpty
            ? CacheKey(partition: "", method: method, target: head.target) : nil
    }

    /// Whether other calls may have the same exchange: a plain GET is all they could mean by an equal key.
    var mayShare: Bool { head.method == .get && !head.isConditionalOrPartial }

    var storeKey: StoreKey { StoreKey(key.framed) }
    var sharedStoreKey: StoreKey? { sharedKey.map { StoreKey($0.framed) } }

    /// Where a response of this scope is stored.
    func storeKey(for scope: Storability.Scope) -> StoreKey {
        scope == .shared ? sharedStoreKey ?? storeKey : storeKey
    }
}

extension CacheDirective {
    /// What the call asked for; where it asked for nothing, what the URLRequest's policy means.
    init(_ directive: CacheDirective, _ policy: URLRequest.CachePolicy) {
        var asked = directive
        asked.staleAfter = nil
        self = directive
        guard asked == .default else { return }
        switch policy {
        case .useProtocolCachePolicy: break
        case .reloadIgnoringLocalCacheData, .reloadIgnoringLocalAndRemoteCacheData: self = .reload
        case .reloadRevalidatingCacheData: self = .revalidate
        case .returnCacheDataElseLoad: ignoresAge = true
        case .returnCacheDataDontLoad:
            ignoresAge = true
            onlyIfCached = true
        @unknown default: break
        }
    }
}
