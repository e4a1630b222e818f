// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import HoldfastSemantics
internal import HoldfastStorage

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// The data for looking up a request.
struct CacheLookup: Sendable {
    /// The request as it arrived at the cache, with implicit fields and without ignored cookies.
    private(set) var head: RequestHead
    /// Its fields with all cookies.
    let presented: HeaderFields
    /// The digest that identifies the partition; empty without credentials.
    let principal: String
    let directive: CacheDirective
    /// The request's Cache-Control.
    let cacheControl: CacheControl
    /// Whether the caller asks for a part or sends a condition.
    private(set) var isConditionalOrPartial: Bool
    /// The key in the principal's partition.
    let key: CacheKey
    /// The key in the shared partition, if that may be read too.
    let sharedKey: CacheKey?
    /// The content of a QUERY or of a read-only POST; nil if it is not part of the keys.
    let content: RequestContent?
    /// Whether the request has content that is not part of the key, so that nothing of its result may be stored.
    let hasUnkeyedContent: Bool
    /// Whether the response is the target's representation or is about it, so that stored responses of the target are relevant.
    let isRetrieval: Bool
    /// Fields other than Authorization and Cookie that contain a credential: those that the call names, and those added by hooks
    /// unless they are known to contain none.
    let credentialFields: [FieldName]
    /// Whether the user declared that the request changes nothing, although its method may.
    let onlyAsks: Bool
    /// Whether entries of the shared partition are only read, since each principal's cache is private.
    let borrows: Bool
    /// Why the store is not used; nil if it is.
    let bypassReason: CacheReason?
    /// The target's generation at that time: a response requested before may be older than what is stored.
    var generation: CacheWriter.Generation
    /// What was stored for the request at that time: once there is a newer response, none of it may be used again.
    private(set) var matching: [CacheCandidate] = []
    /// When the newest response was requested that the requester may have been given, as far as the cache knows; nil if unknown.
    private(set) var newestOrder: HybridTimestamp?
    /// How many fetches of the cache had ended at that time, and the results of earlier lookups of the same call.
    var completions: UInt64
    let history: LookupHistory
    /// Counts what happens to the call.
    let metrics: CallMetrics

    init?(_ request: URLRequest, context: CallContext, cache: HTTPCache, history: LookupHistory) {
        presented = context.presentedFields(of: request)
        guard var head = context.head(of: request, fields: presented) else { return nil }
        head.fields = cache.view(of: presented, to: head.target)
        self.head = head
        self.history = history
        metrics = CallMetrics(cache.meter, target: head.target, history: history, clock: context.clock)
        completions = cache.fetches.completions
        credentialFields = context.options.credentialFields + context.fieldsOfHooks(in: request)
        principal = cache.principal(
            of: presented,
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
        // The result of a POST may answer a GET, which does not have its content.
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
        generation = cache.generation(of: key.target)
    }

    /// Records what is stored for the request, so that later requests count as newer than all of it.
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

    /// Whether the caller requires validation before anything is used (RFC 9111 §5.2.1.4).
    var asksValidation: Bool { directive.revalidate || cacheControl.noCache != .absent || cacheControl.maxAge == 0 }

    /// Whether other calls may share the exchange: with an equal key, a plain GET or the same content means the same.
    var mayShare: Bool { (head.method == .get || content != nil) && !isConditionalOrPartial }

    var storeKey: StoreKey { StoreKey(key.framed) }
    var sharedStoreKey: StoreKey? { sharedKey.map { StoreKey($0.framed) } }

    /// Whether entries under a key are the requester's own, and not only borrowed.
    func owns(_ key: CacheKey) -> Bool { !borrows || key.partition == principal }

    /// The principal whose request was sent; nil if fields were added or changed on the way and it is unknown whose they are.
    ///
    /// Fields from a prepare step, or from a hook below the cache, were not known at the lookup. Unless a field is known not to be
    /// a credential it may be one, and then the response is only for its owner.
    ///
    /// - Parameter response: the response to the request that was sent; the result is also nil if it does not say which request
    ///   that was.
    func partition(sentFor response: Response, in context: CallContext, of cache: HTTPCache) -> String? {
        guard let presented = response.presentation.presented?.fields(probably: presented) else { return nil }
        return partition(ofSent: cache.view(of: presented, to: head.target), in: context, of: cache)
    }

    /// - Parameter fields: the fields that were sent, as the cache sees them.
    func partition(ofSent fields: HeaderFields, in context: CallContext, of cache: HTTPCache) -> String? {
        if context.options.principal == nil, changesUserinfo(of: context.exchange?.request) { return nil }
        // Most requests are sent as they were looked up.
        if fields == head.fields { return principal }
        if context.options.principal == nil, addsUnattributed(fields, in: context) { return nil }
        // Requests with the sent values would not look under the key that was looked up.
        for name in cache.options.keyFields(for: head.target) where fields[name] != head.fields[name] { return nil }
        return cache.principal(of: fields, to: head.target, credentialFields: credentialFields, context)
    }

    /// Whether a step has changed the userinfo of the URL, which a transport may turn into a credential.
    private func changesUserinfo(of sent: URLRequest?) -> Bool {
        guard let text = sent?.url?.absoluteString, text.utf8.contains(UInt8(ascii: "@")) || head.target.userinfo != nil
        else {
            return false
        }
        return (try? TargetURI(text))?.userinfo != head.target.userinfo
    }

    private func addsUnattributed(_ fields: HeaderFields, in context: CallContext) -> Bool {
        let announced = context.exchange?.announcedFields ?? []
        return fields.contains { line in
            let name = line.name
            // Fields that determine the partition are compared by it.
            if name == .authorization || name == .cookie || credentialFields.contains(name) { return false }
            if !name.mayHoldCredential || announced.contains(name) { return false }
            return head.fields[name] != fields[name]
        }
    }

    /// The same lookup without some of the caller's fields.
    func removing(_ names: [FieldName]) -> CacheLookup {
        var lookup = self
        for name in names { lookup.head.fields.removeAll(name) }
        lookup.isConditionalOrPartial = lookup.head.isConditionalOrPartial
        return lookup
    }

    /// Where a response of this scope is stored.
    func storeKey(for scope: Storability.Scope) -> StoreKey {
        scope == .shared ? sharedStoreKey ?? storeKey : storeKey
    }
}

extension CallContext {
    /// The fields that hooks have added to the caller's request or changed, except those known to contain no credential.
    ///
    /// Adding a credential ties the response to a principal, whether or not the call says so.
    func fieldsOfHooks(in request: URLRequest) -> [FieldName] {
        guard let callerFields, options.principal == nil else { return [] }
        return request.fieldsAdded(to: callerFields).compactMap { FieldName($0) }.filter { name in
            name != .authorization && name != .cookie && name.mayHoldCredential
                && !options.credentialFields.contains(name)
        }
    }
}

extension CacheDirective {
    /// The call's directive; if it has none, the meaning of the URLRequest's policy.
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

/// The keys for looking up a request, and whether its content is part of them.
struct LookupKeys: Sendable {
    /// The key in the principal's partition.
    let own: CacheKey
    /// The key in the shared partition, if that may be read too.
    let shared: CacheKey?
    /// The content of a QUERY or an opted-in POST; nil if it is not part of the keys.
    let content: RequestContent?
    /// Whether the user declared that this request changes nothing, although its method may.
    let onlyAsks: Bool
    /// Why the request has no key; nil if it has one.
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
        // The result of a POST can only answer a later GET (RFC 9110 §9.3.3).
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

    /// The content that is part of the key of a request; nil if there is none, or if it is too long or not in memory.
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
        // Reading a file or a stream would delay the lookup, and would require it twice.
        case .bytes, .file, .factory, .oneShot, .requestStream:
            return nil
        }
    }

    /// How the content is read for the key; nil if the method, or a missing declaration of the user, excludes it.
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
    /// Whether both are equal.
    func isSame(as other: RequestContent?) -> Bool {
        contentType == other?.contentType && digest == other?.digest
    }
}

extension URLRequest {
    /// Writes path and query in the form of the key, so that what is stored under a key was requested with it.
    ///
    /// A transport that sends `/a/%2e%2e/b` unchanged would get the response of a server that distinguishes it from `/b`, although
    /// both have the same key (RFC 3986 §6.2.2). A target given by the call (``ExactRequestHead``) is sent unchanged.
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
