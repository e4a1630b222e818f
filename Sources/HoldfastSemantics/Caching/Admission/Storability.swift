// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Whether a response may be stored, and for whom (RFC 9111 §3).
public enum Storability: Sendable, Hashable {
    /// It may be stored.
    case store(scope: Scope)
    /// It must not be stored, for this reason.
    case doNotStore(Reason)

    /// Who may be answered from it.
    public enum Scope: Sendable, Hashable {
        /// The principal whose request it answered.
        case principal
        /// Everyone.
        case shared
    }

    /// Why a response is not stored.
    public typealias Reason = CacheReason

    /// Decides whether a response may be stored.
    ///
    /// This does not check whether the body is complete; a partial body must never be committed (RFC 9111 §3.3).
    ///
    /// - Parameters:
    ///   - request: the request as it was sent, including fields that the transport adds.
    ///   - response: the response as received.
    ///   - directive: what the call asks.
    ///   - options: the cache's rules.
    ///   - isPersonal: whether the request is known to be of one principal by means other than its Authorization and Cookie fields;
    ///     false by default.
    ///   - hasContentKey: whether it is a QUERY or an opted-in POST whose content is in the key; false by default.
    /// - Returns: the result; the first reason that applies.
    public static func decide(
        request: RequestHead,
        response: ResponseHead,
        directive: CacheDirective,
        options: CacheOptions,
        isPersonal: Bool = false,
        hasContentKey: Bool = false
    ) -> Storability {
        if let ruled = options.ruled(for: request.target, fields: response.fields) {
            return decide(
                request: request,
                response: response,
                directive: directive,
                options: ruled,
                isPersonal: isPersonal,
                hasContentKey: hasContentKey
            )
        }
        if options.neverStores { return .doNotStore(.neverStore) }
        let ruling = RulingCacheControl(response.fields, targets: options.targets)
        let cacheControl = ruling.cacheControl
        if request.namesOtherHost { return .doNotStore(.host) }
        if let reason = statusReason(
            request,
            response: response,
            ruling: ruling,
            options: options,
            hasContentKey: hasContentKey
        ) {
            return .doNotStore(reason)
        }
        if directive.noStore || CacheControl(request: request.fields).noStore { return .doNotStore(.requestNoStore) }
        // With must-understand and a known status, no-store only addresses older caches.
        if cacheControl.noStore, !cacheControl.mustUnderstand, options.fixedLifetime == nil {
            return .doNotStore(.responseNoStore)
        }
        if options.mode == .shared {
            if cacheControl.private == .unqualified { return .doNotStore(.privateResponse) }
            if request.fields.contains(.authorization), !releasesAuthorized(cacheControl) {
                return .doNotStore(.authorization)
            }
        }
        guard NominatedFields.names(vary: response.fields) != nil else { return .doNotStore(.varyStar) }
        guard isWorthStoring(response, ruling: ruling, options: options) else { return .doNotStore(.noFreshness) }
        return .store(scope: scope(request, cacheControl: cacheControl, options: options, isPersonal: isPersonal))
    }

    private static func statusReason(
        _ request: RequestHead,
        response: ResponseHead,
        ruling: RulingCacheControl,
        options: CacheOptions,
        hasContentKey: Bool
    ) -> Reason? {
        if options.fixedLifetime != nil {
            guard request.method == .get else { return .method }
            guard response.status.isSuccessful else { return .status }
        }
        guard request.method == .get || hasContentKey || answersLaterGet(request, response: response, ruling: ruling)
        else {
            return .method
        }
        guard response.status.isFinal else { return .status }
        if response.status.forbidsStoring { return .statusForbidsStoring }
        if response.status == .partialContent { return .partialContent }
        if response.status == .notModified { return .notModified }
        // A failure because of one request's condition or range does not concern requests without it, and no key tells them apart
        // (RFC 9110 §15.5.13, §15.5.17).
        if response.status == .preconditionFailed, request.isConditionalOrPartial { return .originCondition }
        if response.status == .rangeNotSatisfiable, request.fields.contains(.range) { return .partialContent }
        if ruling.cacheControl.mustUnderstand, options.fixedLifetime == nil, !response.status.isRegistered {
            return .notUnderstood
        }
        return nil
    }

    /// Whether the response to a POST is the representation that a GET would have got, and says how long it is fresh (RFC 9110
    /// §9.3.3).
    private static func answersLaterGet(
        _ request: RequestHead,
        response: ResponseHead,
        ruling: RulingCacheControl
    ) -> Bool {
        guard request.method == .post, response.status == .ok,
            ruling.statesFreshness
        else { return false }
        let locations = response.fields.values(of: .contentLocation)
        guard let location = locations.first, locations.count == 1, !location.isEmpty else { return false }
        return request.target.resolving(location) == request.target
    }

    /// Whether the response may be used for others than the user who asked (RFC 9111 §3.5); malformed directives allow nothing.
    private static func releasesAuthorized(_ cacheControl: CacheControl) -> Bool {
        cacheControl.public || cacheControl.grants("must-revalidate") || cacheControl.hasValidSharedMaxAge
    }

    private static func isWorthStoring(
        _ response: ResponseHead,
        ruling: RulingCacheControl,
        options: CacheOptions
    ) -> Bool {
        if options.fixedLifetime != nil { return true }
        let cacheControl = ruling.cacheControl
        if cacheControl.maxAge != nil || cacheControl.public || ruling.hasExpires { return true }
        if options.mode == .shared ? cacheControl.sMaxAge != nil : cacheControl.private != .absent { return true }
        if options.negativeLifetime != nil, response.allowsNegativeCaching(by: ruling) { return true }
        return response.status.isHeuristicallyCacheable
    }

    private static func scope(
        _ request: RequestHead,
        cacheControl: CacheControl,
        options: CacheOptions,
        isPersonal: Bool
    ) -> Scope {
        guard options.mode == .shared else { return .principal }
        if cacheControl.public || cacheControl.hasValidSharedMaxAge { return .shared }
        // An authorized request gets here only because of must-revalidate, which allows its response for everyone; but it speaks of
        // Authorization alone, not of another credential beside it (RFC 9111 §3.5).
        return isPersonal || request.fields.contains(.cookie) ? .principal : .shared
    }
}

/// Which errors may be stored as an answer about the resource, and which responses must never be stored.
extension StatusCode {
    /// Whether a response with this status must never be stored, whatever its fields say: 428, 429, 431 and 511
    /// (RFC 6585 §3 to §6), and 425, which is about a connection that has not finished its handshake (RFC 8470 §5.2).
    public var forbidsStoring: Bool {
        switch rawValue {
        case 425, 428, 429, 431, 511: true
        default: false
        }
    }

    /// Whether the status is an error about the resource, for anyone who asks.
    ///
    /// False for statuses that are about one user (401, 407), one connection or moment (408, 421, 425, 426, 429), or something in
    /// one request (406, 412, 413, 415, 416, 417, 428, 431), and for a network that requires a login first (511).
    public var isErrorOfResource: Bool {
        switch rawValue {
        case 401, 406, 407, 408, 412, 413, 415, 416, 417, 421, 425, 426, 428, 429, 431, 511: false
        case 400...599: true
        default: false
        }
    }
}

extension ResponseHead {
    /// Whether a cache may choose a lifetime for the response because it is an error that states none; see
    /// ``CacheOptions/negativeLifetime``.
    ///
    /// With Retry-After, the server says when it wants to be asked again, and any other lifetime would contradict it.
    func allowsNegativeCaching(by ruling: RulingCacheControl) -> Bool {
        status.isErrorOfResource && !fields.contains(.retryAfter) && !ruling.statesFreshness
    }
}
