// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// What a response does to a cache: the one rule that every response passes before anything is stored.
///
/// Whatever the response is, its result is decided like a 200 with the same fields to the same requester (``Storability``). A
/// complete response and a part are decided before they are stored; a 304, a response to HEAD and a part that joins stored bytes are
/// decided together with the stored fields that they update. So the cache never holds anything that such a 200 could not have put
/// there (RFC 9111 §3, §3.2 to §3.5, §4.1, §4.3.4, §4.3.5).
///
/// A pure function: the cache looks up, this decides, and one writer carries it out.
package struct Admission: Sendable, Hashable {
    /// What to do.
    package enum Action: Sendable, Hashable {
        /// Store this response with its bytes.
        case store(StoredResponse, scope: Storability.Scope)
        /// Give the stored response these fields; its bytes stay as they are.
        case freshen(StoredResponse)
        /// Remove the stored response: it is no longer valid, or its updated form must not be stored.
        case remove
        /// Change nothing.
        case pass
    }

    /// What a response is, by its status and its request.
    package enum Kind: Sendable {
        /// A whole response: neither 206 nor 304.
        case complete
        /// A 206 that is stored by itself.
        case part(ReceivedPart)
        /// A 206 that joins a stored response (RFC 9111 §3.4).
        case joining(PartCombination, Existing)
        /// A 304 that selects a stored response (RFC 9111 §4.3.4).
        case notModified(Existing)
        /// A response to HEAD, as news about a stored response to GET (RFC 9111 §4.3.5).
        case head(Existing, bodyLength: Int)

        /// The stored response that it updates, if any.
        fileprivate var existing: StoredResponse? {
            switch self {
            case .complete, .part: nil
            case .joining(_, let existing), .notModified(let existing), .head(let existing, _): existing.stored
            }
        }
    }

    /// A stored response that already exists.
    package struct Existing: Sendable {
        /// The response.
        package let stored: StoredResponse
        /// Its partition; "" if it is for everyone.
        package let partition: String

        /// Creates a stored response with its partition.
        package init(_ stored: StoredResponse, partition: String) {
            self.stored = stored
            self.partition = partition
        }
    }

    /// What to do.
    package let action: Action

    /// Why nothing of the response is stored; nil if something is.
    package let reason: CacheReason?

    /// Whether the response may also answer other waiting requests of the same requester: it could be stored for that requester and
    /// used without validation (RFC 9111 §4, §5.2.2.4), whether or not it changes what is stored for others.
    package let isShareable: Bool

    /// Decides about a response.
    ///
    /// - Parameters:
    ///   - response: the response as received.
    ///   - kind: what it is.
    ///   - exchange: who asked for it, how and when.
    ///   - options: the cache's rules.
    ///   - secret: the key for the digests of nominated credentials.
    package init(
        of response: ResponseHead,
        as kind: Kind,
        in exchange: Exchange,
        options: CacheOptions,
        secret: [UInt8]
    ) {
        // A 304 and a part need not have a content type; the stored response has it.
        if let ruled = options.ruled(
            for: exchange.lookedUp.target,
            fields: kind.existing?.head.fields ?? response.fields
        ) {
            self.init(of: response, as: kind, in: exchange, options: ruled, secret: secret)
            return
        }
        if let reason = exchange.refusal ?? (options.neverStores ? .neverStore : nil) {
            self.init(.pass, because: reason)
            return
        }
        let evaluator = Evaluator(exchange: exchange, options: options, secret: secret)
        let decided =
            switch kind {
            case .complete: evaluator.newEntry(response, head: response, ranges: nil)
            case .part(let part): evaluator.newEntry(response, head: part.storedHead, ranges: part.ranges)
            case .joining(let combination, let existing): evaluator.joined(combination, to: existing, by: response)
            case .notModified(let existing): evaluator.confirmed(existing, by: response)
            case .head(let existing, let bodyLength):
                evaluator.described(existing, bodyLength: bodyLength, by: response)
            }
        self.init(
            decided.action.ordered(exchange.requestOrder),
            because: decided.reason,
            isShareable: decided.isShareable
        )
    }

    fileprivate init(_ action: Action, because reason: CacheReason? = nil, isShareable: Bool = false) {
        self.action = action
        self.reason = reason
        self.isShareable = isShareable
    }
}

extension Admission {
    /// Who asked for a response, how and when.
    package struct Exchange: Sendable {
        /// The request as it was looked up.
        package var lookedUp: RequestHead
        /// The request as it was sent; nil if that cannot be seen, in which case nothing is stored.
        package var sent: RequestHead?
        /// The principal whose request was looked up (``CachePrincipal``); "" for an anonymous one.
        package var partition: String
        /// The principal whose request was sent; nil if fields were added on the way and it is unknown whose they are. Unless it
        /// equals ``partition``, nothing is stored.
        package var sentPartition: String?
        /// Whether the call named its principal.
        package var isNamed = false
        /// Whether content was sent that is not part of the key; then nothing is stored.
        package var hasUnkeyedContent = false
        /// Whether the content of the request is in the key.
        package var hasContentKey = false
        /// Whether what is stored for the request is not an error.
        package var hasUsableStored = false
        /// Whether what is stored for the request may be served in place of an error of the origin (RFC 5861 §4).
        package var hasStoredForErrors = false
        /// Whether a content coding was decoded, so that the bytes differ from those that the origin's fields describe.
        package var contentDecoded = false
        /// When the request was sent.
        package var requestTime: Timestamp
        /// The order of the request among all requests of the cache; by default from its time.
        package var requestOrder: HybridTimestamp
        /// When the response arrived.
        package var responseTime: Timestamp
        /// What the call asks of the cache.
        package var directive: CacheDirective
        /// Fields in addition to Authorization and Cookie whose values are credentials.
        package var credentialFields: [FieldName]

        /// Describes an exchange; each omitted value has the default of its property.
        package init(
            lookedUp: RequestHead,
            sent: RequestHead?,
            partition: String = "",
            sentPartition: String? = "",
            requestTime: Timestamp,
            responseTime: Timestamp,
            directive: CacheDirective = .default,
            credentialFields: [FieldName] = []
        ) {
            self.lookedUp = lookedUp
            self.sent = sent
            self.partition = partition
            self.sentPartition = sentPartition
            self.requestTime = requestTime
            requestOrder = HybridTimestamp(requestTime)
            self.responseTime = responseTime
            self.directive = directive
            self.credentialFields = credentialFields
        }

        /// Why nothing of the exchange may be stored for the requester, whatever the response; nil if something may.
        package var refusal: CacheReason? {
            guard let sent else { return .hiddenRequest }
            if sent.target != lookedUp.target { return .otherTarget }
            if sentPartition != partition { return .otherPrincipal }
            return hasUnkeyedContent ? .content : nil
        }

        /// The request fields that Vary selects from.
        ///
        /// Conditions of a revalidation or completion are the cache's own and select nothing. Content without a coding, which a
        /// cache requests when it handles parts, is acceptable to any caller.
        package var selecting: HeaderFields {
            guard let sent else { return lookedUp.fields }
            var fields = sent.fields
            var own: [FieldName] = [.ifNoneMatch, .ifModifiedSince, .range, .ifRange]
            if fields[.acceptEncoding] == "identity" { own.append(.acceptEncoding) }
            // If nothing differs, nothing is copied.
            for name in own where fields[name] != lookedUp.fields[name] { fields[name] = lookedUp.fields[name] }
            return fields
        }
    }
}

/// The decision about one response, by its kind.
private struct Evaluator {
    let exchange: Admission.Exchange
    let options: CacheOptions
    let secret: [UInt8]

    // MARK: New entries

    func newEntry(_ response: ResponseHead, head: ResponseHead, ranges: StoredRanges?) -> Admission {
        let scope: Storability.Scope
        switch storability(of: head, asGet: false) {
        case .store(let permitted): scope = permitted
        case .doNotStore(let reason): return Admission(.pass, because: reason)
        }
        if keepsStored(insteadOf: response) { return Admission(.pass, because: .negativeOverStored) }
        guard let nominated = nominated(by: head.fields) else { return Admission(.pass, because: .varyStar) }
        var stored = StoredResponse(
            target: exchange.lookedUp.target,
            method: exchange.hasContentKey ? exchange.lookedUp.method : .get,
            nominated: nominated,
            head: FieldUpdate.storable(
                head,
                contentDecoded: exchange.contentDecoded,
                mode: options.mode,
                targetedFields: options.targets,
                ignoredCookies: options.ignored
            ),
            requestTime: exchange.requestTime,
            responseTime: exchange.responseTime,
            contentDecoded: exchange.contentDecoded,
            givenLifetime: exchange.directive.lifetime?.wholeSeconds,
            targetedFields: options.targets
        )
        stored.ranges = ranges
        return Admission(.store(stored, scope: scope), isShareable: isShareable(stored))
    }

    /// Whether what is stored is worth more than an error: it may be served in its place, or only the cache would keep the error.
    private func keepsStored(insteadOf response: ResponseHead) -> Bool {
        if exchange.hasStoredForErrors, response.status.isOriginError { return true }
        return exchange.hasUsableStored && options.negativeLifetime != nil && response.status.rawValue >= 500
            && response.allowsNegativeCaching(by: RulingCacheControl(response.fields, targets: options.targets))
    }

    // MARK: Updates of stored responses

    func confirmed(_ existing: Admission.Existing, by response: ResponseHead) -> Admission {
        let merged = existing.stored.freshened(
            by: response,
            requestTime: exchange.requestTime,
            responseTime: exchange.responseTime,
            mode: options.mode,
            givenLifetime: exchange.directive.lifetime?.wholeSeconds,
            ignoredCookies: options.ignored
        )
        return update(existing, to: merged, by: response)
    }

    func described(_ existing: Admission.Existing, bodyLength: Int, by response: ResponseHead) -> Admission {
        let stored = existing.stored
        // Only a 200 counts, and only if it could be stored as a response to GET.
        guard exchange.sent?.method == .head, stored.method == .get, response.status == .ok,
            case .store(let scope) = storability(of: response, asGet: true)
        else { return Admission(.pass, because: .method) }
        let isSame: Bool? =
            stored.head.status == .ok
            ? stored.hasSameContent(as: response, bodyLength: bodyLength, receivedAt: exchange.responseTime) : false
        if isSame == false {
            // RFC 9111 §4.3.5 calls it stale; with a different validator, a revalidation would not succeed.
            if isOvertaken(by: stored) { return Admission(.pass, because: .overtaken) }
            return speaksFor(existing, scope: scope)
                ? Admission(.remove, because: .stale) : Admission(.pass, because: .otherPrincipal)
        }
        // Without a validator or a length, the response may describe other content. A fixed lifetime counts from the receipt of the
        // content, and this is no receipt.
        if isSame == nil || options.fixedLifetime != nil { return Admission(.pass, because: .method) }
        let merged = stored.freshened(
            by: response,
            requestTime: exchange.requestTime,
            responseTime: exchange.responseTime,
            mode: options.mode,
            ignoredCookies: options.ignored
        )
        // The fields agree, but that is less than the confirmation that was requested.
        return update(existing, to: stored.needsConfirmation ? merged.needingConfirmation : merged, by: response)
    }

    func joined(_ combination: PartCombination, to existing: Admission.Existing, by response: ResponseHead) -> Admission
    {
        let merged = combination.joined
        // Everything is stored already: the part only brings newer fields.
        if existing.stored.ranges == nil { return update(existing, to: merged, by: response) }
        switch decide(existing, to: merged, by: response) {
        case .failure(let refusal): return Admission(.pass, because: refusal.reason)
        case .success(let (filed, scope)):
            // The joined response is for one principal if either of the two is.
            let isForAll = scope == .shared && existing.partition.isEmpty && !setsCookieOfOne(response)
            return Admission(.store(filed, scope: isForAll ? .shared : .principal), isShareable: isShareable(filed))
        }
    }

    private struct Refusal: Error {
        let reason: CacheReason
    }

    private func update(
        _ existing: Admission.Existing,
        to merged: StoredResponse,
        by response: ResponseHead
    ) -> Admission {
        switch decide(existing, to: merged, by: response) {
        case .success(let (filed, scope)):
            let isItsOwn = existing.partition == exchange.partition
            guard isItsOwn || speaksFor(existing, scope: scope) && !setsCookieOfOne(response) else {
                // Waiting requests get the stored response as it is, and only if the update names no other variant.
                let isForAll =
                    isShareable(filed) && isShareable(existing.stored) && filed.nominated == existing.stored.nominated
                return Admission(.pass, because: .otherPrincipal, isShareable: isForAll)
            }
            return Admission(.freshen(filed), isShareable: isShareable(filed))
        case .failure(let refusal):
            let mustGo: Set<CacheReason> = [
                .responseNoStore, .privateResponse, .authorization, .varyStar, .notUnderstood, .noFreshness,
            ]
            let isGone = mustGo.contains(refusal.reason) && speaksFor(existing, scope: nil)
            return Admission(isGone ? .remove : .pass, because: refusal.reason)
        }
    }

    /// The stored response with its updated fields, and for whom a 200 like that could be stored.
    private func decide(
        _ existing: Admission.Existing,
        to merged: StoredResponse,
        by response: ResponseHead
    ) -> Result<(StoredResponse, Storability.Scope), Refusal> {
        let stored = existing.stored
        if isOvertaken(by: stored) { return .failure(Refusal(reason: .overtaken)) }
        guard stored.isSelected(by: exchange.selecting, secret: secret) else {
            return .failure(Refusal(reason: .noVariant))
        }
        switch storability(of: merged.head, asGet: true) {
        case .doNotStore(let reason): return .failure(Refusal(reason: reason))
        case .store(let scope):
            guard let nominated = nominated(by: merged.head.fields) else {
                return .failure(Refusal(reason: .varyStar))
            }
            // With other nominated names, it is stored under the values of the request that brought these names.
            let filed = nominated.names == stored.nominated.names ? merged : merged.nominating(nominated)
            return .success((filed, scope))
        }
    }

    // MARK: Rules

    /// Whether waiting requests may get it: `no-cache` allows it only for its own request.
    private func isShareable(_ stored: StoredResponse) -> Bool {
        !stored.facts.flags.contains(.noCache) || options.fixedLifetime != nil
    }

    /// Whether a response to this requester may change a stored response: the requester's own, or everyone's if the result may be
    /// shared.
    ///
    /// - Parameter scope: for whom a 200 with the merged fields could be stored; nil if it could not.
    private func speaksFor(_ existing: Admission.Existing, scope: Storability.Scope?) -> Bool {
        existing.partition == exchange.partition || existing.partition.isEmpty && scope == .shared
    }

    /// Whether a response sets a cookie for a requester with credentials and does not itself say that it is for everyone: what the
    /// stored response said about its own fields does not apply to this one's (RFC 9111 §7.3).
    private func setsCookieOfOne(_ response: ResponseHead) -> Bool {
        guard !exchange.partition.isEmpty, response.fields.contains(.setCookie),
            options.ignored.withoutSetCookies(response.fields).contains(.setCookie)
        else { return false }
        let cacheControl = RulingCacheControl(response.fields, targets: options.targets).cacheControl
        return !cacheControl.public && !cacheControl.hasValidSharedMaxAge
    }

    /// Whether the stored response was requested after this one: an older response never replaces a newer one (RFC 9111 §4).
    private func isOvertaken(by stored: StoredResponse) -> Bool {
        stored.requestOrder > exchange.requestOrder
    }

    private func nominated(by fields: HeaderFields) -> NominatedFields? {
        NominatedFields(
            vary: fields,
            request: exchange.selecting,
            secret: secret,
            credentialFields: exchange.credentialFields
        )
    }

    /// - Parameter asGet: whether a HEAD request counts as the GET whose stored response it is about.
    private func storability(of head: ResponseHead, asGet: Bool) -> Storability {
        guard var request = exchange.sent else { return .doNotStore(.hiddenRequest) }
        if asGet, request.method == .head { request.method = .get }
        return Storability.decide(
            request: request,
            response: head,
            directive: exchange.directive,
            options: options,
            isPersonal: isPersonal(request),
            hasContentKey: exchange.hasContentKey
        )
    }

    /// Whether something other than Authorization and Cookie says whose the request is.
    private func isPersonal(_ request: RequestHead) -> Bool {
        guard !exchange.partition.isEmpty else { return false }
        return exchange.isNamed || !request.fields.contains(.authorization)
            || exchange.credentialFields.contains { $0 != .authorization && request.fields.contains($0) }
    }
}

extension Admission.Action {
    /// The same action, for a response requested at `order`.
    fileprivate func ordered(_ order: HybridTimestamp) -> Admission.Action {
        switch self {
        case .store(var stored, let scope):
            stored.requestOrder = order
            return .store(stored, scope: scope)
        case .freshen(var stored):
            stored.requestOrder = order
            return .freshen(stored)
        case .remove, .pass: return self
        }
    }
}

extension StoredResponse {
    /// Whether each validator and the length that a response to HEAD has are the stored ones (RFC 9111 §4.3.5); nil if it has
    /// none that could be compared.
    fileprivate func hasSameContent(as response: ResponseHead, bodyLength: Int, receivedAt: Timestamp) -> Bool? {
        var isSame: Bool?
        if response.fields.contains(.eTag) {
            guard let tag = response.entityTag, let known = head.entityTag, tag.weakMatches(known) else {
                return false
            }
            isSame = true
        }
        if response.fields.contains(.lastModified) {
            guard let date = response.lastModified(receivedAt: receivedAt), date == lastModified else { return false }
            isSame = true
        }
        guard !contentDecoded, response.fields.contains(.contentLength) else { return isSame }
        // If only a part is stored, HEAD gives the length of the whole, if that is known.
        guard let ranges else { return response.contentLength == bodyLength }
        return ranges.completeLength.map { $0 == response.contentLength.map { Int64($0) } } ?? isSame
    }
}
