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
    private(set) var head: RequestHead
    /// Its fields with all cookies.
    let presented: HeaderFields
    /// The digest that names the partition; empty without credentials.
    let principal: String
    let directive: CacheDirective
    /// The request's Cache-Control.
    let cacheControl: CacheControl
    /// Whether the caller asks for a part or states a condition of its own.
    private(set) var isConditionalOrPartial: Bool
    /// The key in the principal's partition.
    let key: CacheKey
    /// The key in the shared partition, where that may be read as well.
    let sharedKey: CacheKey?
    /// The content of a QUERY or of a POST that only asks; nil where it is no part of the keys.
    let content: RequestContent?
    /// Whether the request has content that the key does not tell, so that nothing that comes of it may be kept.
    let hasUnkeyedContent: Bool
    /// Whether what comes is the target's representation, or tells of it, so that what is stored of it has to do with it.
    let isRetrieval: Bool
    /// Fields beside Authorization and Cookie that hold a credential: those that the call names, and those that hooks have added of
    /// which nothing says that they hold none.
    let credentialFields: [FieldName]
    /// Whether the user says that the request changes nothing, although its method may.
    let onlyAsks: Bool
    /// Whether entries of the shared partition are read only, since each principal's cache is private.
    let borrows: Bool
    /// Why the store is not asked; nil where it is.
    let bypassReason: CacheReason?
    /// What had become of the target by then: a response that was under way since may be older than what is stored.
    var generation: CacheWriter.Generation
    /// What was stored for the request by then: once a newer response is there, none of it may come to light again.
    private(set) var matching: [CacheCandidate] = []
    /// When the newest response that the requester may have been given was asked for, as far as the cache knows; nil where it knows of
    /// none.
    private(set) var newestOrder: HybridTimestamp?
    /// How often something that answers for several queries had been stored by then.
    let searchVarianceCount: UInt64
    /// How many fetches of the cache had ended by then, and what came of earlier look-ups of the same call.
    var completions: UInt64
    let history: LookupHistory
    /// Counts what becomes of the call.
    let metrics: CallMetrics

    init?(_ request: URLRequest, context: CallContext, cache: HTTPCache, history: LookupHistory) {
        presented = context.presentedFields(of: request)
        guard var head = context.head(of: request, fields: presented) else { return nil }
        head.fields = cache.view(of: presented, to: head.target)
        self.head = head
        self.history = history
        metrics = CallMetrics(cache.meter, target: head.target, history: history, clock: context.clock)
        completions = cache.fetches.completions
        searchVarianceCount = cache.searchVarianceCount
        credentialFields = context.options.credentialFields + context.fieldsOfHooks(in: request)
        principal = cache.principal(
            of: head.fields,
            to: head.target,
            credentialFields: credentialFields,
            context
        )
        isConditionalOrPartial = head.isConditionalOrPartial
        directive = CacheDirective(context.options.cache, policy: request.cachePolicy)
        cacheControl = CacheControl(request: head.fields)
        let keys = LookupKeys(
            head,
            principal: principal,
            credentialFields: credentialFields,
            context: context,
            cache: cache
        )
        (key, sharedKey, content) = (keys.own, keys.shared, keys.content)
        onlyAsks = keys.onlyAsks
        // What a POST leaves behind answers a GET, and its content is no part of that.
        isRetrieval = keys.onlyAsks || head.method == .get || head.method == .head
        hasUnkeyedContent = isRetrieval && keys.bypassReason != nil
        borrows = cache.options.mode == .private
        bypassReason =
            (onlyAsks ? keys.bypassReason : nil)
            ?? ReuseDecision.bypassReason(
                head,
                directive: directive,
                cacheControl: cacheControl,
                hasContentKey: content != nil
            )
            ?? keys.bypassReason
            ?? (cache.options.neverStores(head.target) ? .neverStore : nil)
        generation = cache.writer.generation(of: key.target)
    }

    /// Notes what is stored for the request, so that what is asked for from now on is newer than all of it.
    mutating func note(_ candidates: [CacheCandidate], in cache: HTTPCache) {
        let found = candidates.filter { $0.stored.nominated.matches(head.fields, secret: cache.store.secret) }
        matching = found.filter(\.isOwn)
        let newest = found.map(\.stored.requestOrder).max()
        if let newest { RequestOrder.observe(newest) }
        let given = cache.writer.order.newest(
            for: key.target,
            under: [storeKey] + [sharedStoreKey].compactMap(\.self),
            matching: head.fields
        )
        newestOrder = [newest, given].compactMap(\.self).max()
    }

    /// Whether the caller wants the origin's word before anything is used (RFC 9111 §5.2.1.4).
    var asksValidation: Bool { directive.revalidate || cacheControl.noCache != .absent || cacheControl.maxAge == 0 }

    /// Whether other calls may have the same exchange: a plain GET, or the same content, is all they could mean by an equal key.
    var mayShare: Bool { (head.method == .get || content != nil) && !isConditionalOrPartial }

    var storeKey: StoreKey { StoreKey(key.framed) }
    var sharedStoreKey: StoreKey? { sharedKey.map { StoreKey($0.framed) } }

    /// Whether entries under a key are the requester's own, and not only lent to it.
    func owns(_ key: CacheKey) -> Bool { !borrows || key.partition == principal }

    /// Whose request was sent; nil where fields were added or changed on the way of which nobody says whose they are.
    ///
    /// What a prepare step adds, or a hook below the cache, was not known when the request was looked up. Unless it is known to
    /// be no credential it may be one, and then what comes is for whoever it belongs to.
    ///
    /// - Parameter response: what answers the request that was sent; nil too where it does not tell which that was.
    func partition(sentFor response: Response, in context: CallContext, of cache: HTTPCache) -> String? {
        response.presentation.fields.map { cache.view(of: $0, to: head.target) }
            .flatMap { partition(ofSent: $0, in: context, of: cache) }
    }

    /// - Parameter fields: those that were sent, as the cache sees them.
    func partition(ofSent fields: HeaderFields, in context: CallContext, of cache: HTTPCache) -> String? {
        if context.options.principal == nil, changesUserinfo(of: context.exchange?.request) { return nil }
        // Most requests are sent as they were looked up.
        if fields == head.fields { return principal }
        if context.options.principal == nil, addsUnattributed(fields, in: context) { return nil }
        // Under the key that was looked up nobody with the values that were sent would look.
        for name in cache.options.keyFields(for: head.target) where fields[name] != head.fields[name] { return nil }
        return cache.principal(of: fields, to: head.target, credentialFields: credentialFields, context)
    }

    /// Whether a step has written other userinfo into the URL, of which a transport may make a credential.
    private func changesUserinfo(of sent: URLRequest?) -> Bool {
        guard let text = sent?.url?.absoluteString, text.contains("@") || head.target.userinfo != nil else {
            return false
        }
        return (try? TargetURI(text))?.userinfo != head.target.userinfo
    }

    private func addsUnattributed(_ fields: HeaderFields, in context: CallContext) -> Bool {
        let announced = context.exchange?.announcedFields ?? []
        return fields.contains { line in
            let name = line.name
            // Those that name the partition are compared by it.
            if name == .authorization || name == .cookie || credentialFields.contains(name) { return false }
            if !name.mayHoldCredential || announced.contains(name) { return false }
            return head.fields[name] != fields[name]
        }
    }

    /// The same look-up without the caller's own question whether something has changed: of a revalidation that is for the
    /// store alone, a 304 to that question would say nothing about what is stored.
    var withoutOwnValidators: CacheLookup {
        var lookup = self
        for name in CacheLookup.ownValidators { lookup.head.fields.removeAll(name) }
        lookup.isConditionalOrPartial = lookup.head.isConditionalOrPartial
        return lookup
    }

    static let ownValidators: [FieldName] = [.ifNoneMatch, .ifModifiedSince]

    /// Where a response of this scope is stored.
    func storeKey(for scope: Storability.Scope) -> StoreKey {
        scope == .shared ? sharedStoreKey ?? storeKey : storeKey
    }
}

extension CallContext {
    /// The fields that hooks have added to the caller's request, or changed, but for those that are known to hold no credential.
    ///
    /// Who adds a credential makes the response somebody's, whether or not the call says so.
    func fieldsOfHooks(in request: URLRequest) -> [FieldName] {
        guard let callerFields, options.principal == nil else { return [] }
        return request.fieldsAdded(to: callerFields).compactMap { FieldName($0) }.filter { name in
            name != .authorization && name != .cookie && name.mayHoldCredential
                && !options.credentialFields.contains(name)
        }
    }
}

extension CacheDirective {
    /// What the call asked for; where it asked for nothing, what the URLRequest's policy means.
    init(_ directive: CacheDirective, policy: URLRequest.CachePolicy) {
        var asked = directive
        asked.serveStaleAfter = nil
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

/// The keys that a request is looked up by, and whether its content is in them.
struct LookupKeys: Sendable {
    /// The key in the principal's partition.
    let own: CacheKey
    /// The key in the shared partition, where that may be read as well.
    let shared: CacheKey?
    /// The content of a QUERY or an opted-in POST; nil where it is no part of the keys.
    let content: RequestContent?
    /// Whether the user says that this request changes nothing, although its method may.
    let onlyAsks: Bool
    /// Why the request has no key; nil where it has.
    let bypassReason: CacheReason?

    init(
        _ head: RequestHead,
        principal: String,
        credentialFields: [FieldName],
        context: CallContext,
        cache: HTTPCache
    ) {
        let options = cache.options
        let rule = options.keyRule(for: head.target)
        let normalizer = LookupKeys.normalizer(head, rule: rule, context: context)
        content = normalizer.flatMap {
            LookupKeys.content(of: head, normalizer: $0, context: context, options: options)
        }
        onlyAsks = normalizer != nil
        bypassReason = content == nil && (onlyAsks || !context.body.isNone) ? .content : nil
        // What a POST leaves behind answers a later GET, if anything (RFC 9110 §9.3.3).
        let method = head.method == .post && content == nil ? .get : head.method
        let target = (rule?.query ?? options.query).applied(to: head.target)
        let digest = content?.digest ?? ""
        var type = content?.contentType ?? ""
        if options.hasKeyFields {
            type += options.keyFieldText(of: head.fields, to: head.target, secret: cache.store.secret)
        }
        own = CacheKey(
            partition: principal,
            method: method,
            target: target,
            contentType: type,
            contentDigest: digest
        )
        let readsShared =
            switch options.mode {
            case .shared: !principal.isEmpty
            case .private:
                options.cookiesMayBorrow
                    && CachePrincipal.isCookieOnly(
                        head.fields,
                        userinfo: head.target.userinfo,
                        explicit: context.options.principal,
                        credentialFields: credentialFields
                    )
            }
        shared =
            readsShared ? CacheKey(method: method, target: target, contentType: type, contentDigest: digest) : nil
    }

    /// The content that belongs to the key of a request; nil where none does, or where it is too long or not in memory.
    static func content(of head: RequestHead, context: CallContext, options: CacheOptions) -> RequestContent? {
        normalizer(head, rule: options.keyRule(for: head.target), context: context).flatMap {
            content(of: head, normalizer: $0, context: context, options: options)
        }
    }

    private static func content(
        of head: RequestHead,
        normalizer: ContentNormalizer,
        context: CallContext,
        options: CacheOptions
    ) -> RequestContent? {
        switch context.body.form {
        case .none:
            return RequestContent([], fields: head.fields, normalizer: normalizer)
        case .bytes(let bytes) where bytes.count <= options.maximumKeyContent:
            return RequestContent(bytes.array, fields: head.fields, normalizer: normalizer)
        // Reading a file or a stream would make the look-up wait, and need it twice.
        case .bytes, .file, .factory, .oneShot, .requestStream:
            return nil
        }
    }

    /// How the content is read for the key; nil where the method, or want of the user's word, keeps it out.
    private static func normalizer(
        _ head: RequestHead,
        rule: CacheRule?,
        context: CallContext
    ) -> ContentNormalizer? {
        switch head.method {
        case .query: context.options.cachesContent ?? rule?.content ?? .raw
        case .post: context.options.cachesContent ?? (rule?.cachesPost == true ? rule?.content : nil)
        default: nil
        }
    }
}

extension RequestContent {
    /// Whether both say the same.
    func isSame(as other: RequestContent?) -> Bool {
        contentType == other?.contentType && digest == other?.digest
    }
}

extension URLRequest {
    /// Spells path and query as the key does, so that what is stored under a key is what was asked for by it.
    ///
    /// A transport that sends `/a/%2e%2e/b` as written would get the answer of a server that takes it for another resource than
    /// `/b`, whose key it has (RFC 3986 §6.2.2). A target of the call's own (``ExactRequestHead``) is sent as it is keyed anyway.
    mutating func spellTargetAsKeyed(in context: CallContext) {
        guard let text = url?.absoluteString, URLRequest.mayBeSpelledOtherwise(text),
            context.exactHead(for: self) == nil, let target = try? TargetURI(text), !target.isSpelled(in: text)
        else { return }
        var canonical = target.canonical
        if let userinfo = target.userinfo, let start = canonical.range(of: "://") {
            canonical.insert(contentsOf: userinfo + "@", at: start.upperBound)
        }
        if let url = URL(string: canonical) { self.url = url }
    }

    /// Whether a URI has an escape or a segment that begins with a dot: nothing else makes its canonical path and query differ.
    private static func mayBeSpelledOtherwise(_ text: String) -> Bool {
        var text = text
        return text.withUTF8 { bytes in
            var previous: UInt8 = 0
            for byte in bytes {
                if byte == UInt8(ascii: "%") || byte == UInt8(ascii: ".") && previous == UInt8(ascii: "/") {
                    return true
                }
                previous = byte
            }
            return false
        }
    }
}
