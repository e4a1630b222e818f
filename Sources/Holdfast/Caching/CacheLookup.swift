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
    /// The request as it arrived at the cache, implicit fields included and ignored cookies left out.
    let head: RequestHead
    /// Its fields with all cookies.
    let presented: HeaderFields
    /// The digest that names the partition; empty without credentials.
    let principal: String
    let directive: CacheDirective
    /// The request's Cache-Control.
    let cacheControl: CacheControl
    /// Whether the caller asks for a part or states a condition of its own.
    let isConditionalOrPartial: Bool
    /// The key in the principal's partition.
    let key: CacheKey
    /// The key in the shared partition, where that may be read as well.
    let sharedKey: CacheKey?
    /// The content of a QUERY or of a POST that only asks; nil where it is no part of the keys.
    let content: RequestContent?
    /// Whether the user says that the request changes nothing, although its method may.
    let onlyAsks: Bool
    /// Whether entries of the shared partition are read only, since each principal's cache is private.
    let borrows: Bool
    /// Why the store is not asked; nil where it is.
    let bypassReason: CacheReason?
    /// How often the target had been invalidated by then: a response that was under way since may be older than the reason.
    var mark: InvalidationLog.Mark
    /// How many flights of the cache had ended by then, and what came of earlier look-ups of the same call.
    var landings: UInt64
    let trail: LookTrail
    /// Counts what becomes of the call.
    let tally: CallTally

    init?(_ request: URLRequest, _ context: CallContext, _ cache: HTTPCache, _ trail: LookTrail) {
        presented = context.presentedFields(of: request)
        guard let head = context.head(of: request, fields: cache.view(of: presented)) else { return nil }
        self.head = head
        self.trail = trail
        tally = CallTally(cache.meter, head.target, trail, context.clock)
        landings = cache.flights.landings
        principal = cache.principal(of: head.fields, to: head.target, context)
        isConditionalOrPartial = head.isConditionalOrPartial
        directive = CacheDirective(context.options.cache, request.cachePolicy)
        cacheControl = CacheControl(request: head.fields)
        let keys = LookupKeys(head, principal: principal, context, cache.options)
        (key, sharedKey, content) = (keys.own, keys.shared, keys.content)
        onlyAsks = keys.onlyAsks
        borrows = cache.options.mode == .private
        bypassReason =
            (onlyAsks ? keys.bypassReason : nil)
            ?? ReuseDecision.bypassReason(head, directive, cacheControl, content != nil)
            ?? keys.bypassReason
        mark = cache.invalidations.mark(of: key.target)
    }

    /// Whether other calls may have the same exchange: a plain GET, or the same content, is all they could mean by an equal key.
    var mayShare: Bool { (head.method == .get || content != nil) && !isConditionalOrPartial }

    var storeKey: StoreKey { StoreKey(key.framed) }
    var sharedStoreKey: StoreKey? { sharedKey.map { StoreKey($0.framed) } }

    /// Whether what the origin says to this request may change entries under a key.
    func owns(_ key: CacheKey) -> Bool { !borrows || key.partition == principal }

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
        asked.lifetime = nil
        self = directive
        guard asked == .default else { return }
        switch policy {
        case .useProtocolCachePolicy: break
        case .reloadIgnoringLocalCacheData, .reloadIgnoringLocalAndRemoteCacheData: reload = true
        case .reloadRevalidatingCacheData: revalidate = true
        case .returnCacheDataElseLoad: ignoresAge = true
        case .returnCacheDataDontLoad:
            ignoresAge = true
            onlyIfCached = true
        @unknown default: break
        }
    }
}
