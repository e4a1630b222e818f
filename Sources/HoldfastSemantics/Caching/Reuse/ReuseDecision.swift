// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// How to answer a request (RFC 9111 §4).
public enum ReuseDecision: Sendable, Hashable {
    /// Answer from the candidate with this index; with its age in seconds, and whether it is past its lifetime.
    case reuse(candidate: Int, age: Int64, isStale: Bool)
    /// Answer from the first of these candidates although it is stale, and revalidate them in the background (RFC 5861 §3).
    case reuseWhileRevalidating(candidates: [Int], age: Int64)
    /// Send a conditional request for these candidates, the selected one first.
    case revalidate(candidates: [Int])
    /// Request the missing interval of this candidate, with these fields in place of the caller's Range and conditions, and join
    /// the result (RFC 9111 §3.4).
    case complete(candidate: Int, missing: Range<Int64>, fields: HeaderFields)
    /// Send the request as it is.
    case forward(Reason)
    /// Send nothing and answer 504 (RFC 9111 §5.2.1.7).
    case unsatisfiable(Reason)

    /// Why the store does not answer.
    public typealias Reason = CacheReason

    /// Decides how to answer a request from the stored responses of its key.
    ///
    /// A pure function: the store looks up, this decides, and the hook carries it out. A stored GET may answer HEAD.
    ///
    /// - Parameters:
    ///   - request: the request, including fields that the transport adds.
    ///   - candidates: what is stored under the request's primary key, in any order.
    ///   - directive: what the call asks.
    ///   - now: the current time.
    ///   - options: the cache's rules.
    ///   - secret: the key for the digests of nominated credentials.
    /// - Returns: the decision; indexes are into `candidates`.
    public static func decide(
        request: RequestHead,
        candidates: [StoredResponse],
        directive: CacheDirective,
        now: Timestamp,
        options: CacheOptions,
        secret: [UInt8]
    ) -> ReuseDecision {
        ReasonedReuseDecision(
            request: request,
            candidates: candidates,
            directive: directive,
            now: now,
            options: options,
            secret: secret
        ).decision
    }

    /// The candidate that was selected, to answer from or to validate; nil if there is none.
    package var selectedCandidate: Int? {
        switch self {
        case .reuse(let candidate, _, _), .complete(let candidate, _, _): candidate
        case .revalidate(let candidates), .reuseWhileRevalidating(let candidates, _): candidates.first
        case .forward, .unsatisfiable: nil
        }
    }

    /// Why a request is never answered from a store, whatever is stored; nil if a lookup makes sense.
    ///
    /// - Parameters:
    ///   - request: the request.
    ///   - directive: what the call asks.
    ///   - hasContentKey: whether it is a QUERY or an opted-in POST whose content is in the key; false by default.
    package static func bypassReason(
        request: RequestHead,
        directive: CacheDirective,
        hasContentKey: Bool = false
    ) -> Reason? {
        bypassReason(
            request,
            directive: directive,
            cacheControl: CacheControl(request: request.fields),
            hasContentKey: hasContentKey
        )
    }

    package static func bypassReason(
        _ request: RequestHead,
        directive: CacheDirective,
        cacheControl: CacheControl,
        hasContentKey: Bool
    ) -> Reason? {
        guard request.method == .get || request.method == .head || hasContentKey else { return .method }
        if request.namesOtherHost { return .host }
        if request.asksOrigin || request.statesUnfitCondition { return .originCondition }
        if directive.noStore || cacheControl.noStore { return .requestNoStore }
        if directive.reload { return .reload }
        return nil
    }
}

/// A decision about reuse with its basis: the response that was considered, and when it may be served stale.
package struct ReasonedReuseDecision: Sendable, Hashable {
    /// How to answer the request.
    package let decision: ReuseDecision

    /// The candidate that matches the request, whether or not it can be used as it is; nil if none does.
    package let selected: Int?

    /// For a reuse, why it is allowed; otherwise, why the store does not answer.
    package let reason: CacheReason

    /// When the selected candidate may be served stale.
    package let staleAllowance: StaleAllowance

    /// Decides about a request, given what is stored for its key; see
    /// ``ReuseDecision/decide(request:candidates:directive:now:options:secret:)``.
    ///
    /// - Parameters:
    ///   - request: the request.
    ///   - candidates: what is stored under its primary key, in any order.
    ///   - directive: what the call asks of the cache.
    ///   - now: the time for computing ages.
    ///   - options: the cache's rules.
    ///   - secret: the store's secret.
    ///   - hasContentKey: whether the request is a QUERY or an opted-in POST whose content is in the key.
    package init(
        request: RequestHead,
        candidates: [StoredResponse],
        directive: CacheDirective,
        now: Timestamp,
        options: CacheOptions,
        secret: [UInt8],
        hasContentKey: Bool = false
    ) {
        self.init(
            request: request,
            CacheControl(request: request.fields),
            candidates: candidates,
            directive: directive,
            now: now,
            options: options,
            secret: secret,
            hasContentKey: hasContentKey
        )
    }

    /// - Parameters:
    ///   - cacheControl: the request's Cache-Control.
    ///   - isOwn: for each candidate, whether it is in the requester's own partition; empty: all are.
    package init(
        request: RequestHead,
        _ cacheControl: CacheControl,
        candidates: [StoredResponse],
        isOwn: [Bool] = [],
        directive: CacheDirective,
        now: Timestamp,
        options: CacheOptions,
        secret: [UInt8],
        hasContentKey: Bool
    ) {
        let mayNotSend = directive.onlyIfCached || cacheControl.onlyIfCached
        func unanswered(_ reason: CacheReason) -> ReuseDecision {
            mayNotSend ? .unsatisfiable(reason) : .forward(reason)
        }
        if let reason = ReuseDecision.bypassReason(
            request,
            directive: directive,
            cacheControl: cacheControl,
            hasContentKey: hasContentKey
        ) {
            self.init(unanswered(reason), reason: reason)
            return
        }
        if options.neverStores(request.target) {
            self.init(unanswered(.neverStore), reason: .neverStore)
            return
        }
        guard let index = VariantSelection.select(request, among: candidates, isOwn: isOwn, secret: secret)
        else {
            let reason: CacheReason = candidates.isEmpty ? .notStored : .noVariant
            self.init(unanswered(reason), reason: reason)
            return
        }
        if options.neverStores(candidates[index]) {
            self.init(unanswered(.neverStore), reason: .neverStore)
            return
        }
        // A part that lacks requested bytes is completed; an older response that has all of them must not answer (RFC 9111 §4).
        guard candidates[index].hasAll(askedBy: request) else {
            let completion = ReasonedReuseDecision.completion(of: candidates[index], index, for: request)
            self.init(mayNotSend ? .unsatisfiable(.partial) : completion, reason: .partial)
            return
        }
        let selected = candidates[index]
        let (facts, ruled) = (selected.facts, options.ruled(for: selected) ?? options)
        let standing = facts.standing(now: now, options: ruled)
        let (age, isStale) = (standing.age, standing.isStale)
        func offered() -> [Int] {
            ReasonedReuseDecision.offered(index, among: candidates, to: request, options: options, secret: secret)
        }
        // Even a caller that accepts anything stored does not get it unconfirmed.
        if let reason = selected.confirmationReason {
            let decision: ReuseDecision =
                mayNotSend || !selected.hasValidator
                ? unanswered(reason) : .revalidate(candidates: offered())
            self.init(decision, reason: reason, selected: index)
            return
        }
        let isForOneUser = selected.isForOneUser(ruled)
        if directive.ignoresAge, !isForOneUser, ruled.fixedLifetime != nil || !facts.isAgainstItsWord {
            let reason: CacheReason = isStale ? .acceptedStale : .fresh
            self.init(.reuse(candidate: index, age: age, isStale: isStale), reason: reason, selected: index)
            return
        }
        var demand = FreshnessDemand(
            cacheControl,
            directive: directive,
            isImmutable: facts.isImmutable(ruled) && !isStale
        )
        let allowance = StaleAllowance(
            selected,
            request: cacheControl,
            demand: demand,
            standing: standing,
            options: ruled
        )
        if isForOneUser || facts.requiresValidation(ruled) || isStale && selected.forbidsStale(ruled) {
            demand.asksValidation = true
        }
        if demand.accepts(standing) {
            let reason: CacheReason = isStale ? .acceptedStale : .fresh
            self.init(.reuse(candidate: index, age: age, isStale: isStale), reason: reason, selected: index)
            return
        }
        // Nothing is revalidated while nothing may be sent.
        if allowance.whileRevalidating, !mayNotSend {
            let decision = ReuseDecision.reuseWhileRevalidating(candidates: offered(), age: age)
            self.init(decision, reason: .staleWhileRevalidate, selected: index, staleAllowance: allowance)
            return
        }
        let reason: CacheReason = isStale ? .stale : .mustValidate
        let decision =
            mayNotSend || !selected.hasValidator ? unanswered(reason) : ReuseDecision.revalidate(candidates: offered())
        self.init(decision, reason: reason, selected: index, staleAllowance: allowance)
    }

    /// The same decision with another reason, if it is a miss because nothing is stored.
    package func replacingNotStored(by reason: CacheReason) -> ReasonedReuseDecision {
        switch decision {
        case .forward(.notStored): ReasonedReuseDecision(.forward(reason), reason: reason)
        case .unsatisfiable(.notStored): ReasonedReuseDecision(.unsatisfiable(reason), reason: reason)
        default: self
        }
    }

    /// The candidates whose validators are sent, the selected one first.
    ///
    /// Only those that Vary selects: a 304 to the tag of another one could update nothing that a later request would find.
    private static func offered(
        _ index: Int,
        among candidates: [StoredResponse],
        to request: RequestHead,
        options: CacheOptions,
        secret: [UInt8]
    ) -> [Int] {
        let others = candidates.indices.filter {
            $0 != index && candidates[$0].entityTag != nil && candidates[$0].hasAll(askedBy: request)
                && !options.neverStores(candidates[$0])
                && candidates[$0].isSelected(by: request.fields, secret: secret)
        }
        return [index] + others.prefix(options.maximumVariants - 1)
    }

    /// How to request what a stored part lacks; a request for several ranges is sent in its original form.
    private static func completion(of stored: StoredResponse, _ index: Int, for request: RequestHead) -> ReuseDecision {
        // The caller's condition may make all of it unnecessary, and for content that lacks bytes only the origin can evaluate it.
        guard let ranges = stored.ranges, RangeRequest(request.fields).map({ $0.ranges.count == 1 }) ?? true,
            !request.fields.contains(.ifNoneMatch), !request.fields.contains(.ifModifiedSince),
            case .complete(let missing, let fields) = PartialReuse.decide(
                request: request,
                stored: stored,
                ranges: ranges
            )
        else { return .forward(.partial) }
        return .complete(candidate: index, missing: missing, fields: fields)
    }

    private init(
        _ decision: ReuseDecision,
        reason: CacheReason,
        selected: Int? = nil,
        staleAllowance: StaleAllowance = .none
    ) {
        self.decision = decision
        self.reason = reason
        self.selected = selected
        self.staleAllowance = staleAllowance
    }
}

extension StoredResponse {
    /// Whether every byte that a request asks for is stored.
    package func hasAll(askedBy request: RequestHead) -> Bool {
        guard let ranges else { return true }
        guard case .answer = PartialReuse.decide(request: request, stored: self, ranges: ranges) else { return false }
        return true
    }

    /// When it may be served stale at one moment, to a request and a call that say this (RFC 5861, RFC 9111 §4.2.4).
    package func staleAllowance(
        for request: CacheControl,
        directive: CacheDirective,
        now: Timestamp,
        options: CacheOptions
    ) -> StaleAllowance {
        let ruled = options.ruled(for: self) ?? options
        let standing = facts.standing(now: now, options: ruled)
        let isImmutable = facts.isImmutable(ruled) && !standing.isStale
        return StaleAllowance(
            self,
            request: request,
            demand: FreshnessDemand(request, directive: directive, isImmutable: isImmutable),
            standing: standing,
            options: ruled
        )
    }

    /// Whether it may be served in place of an error of the origin to a request that says nothing about it (RFC 5861 §4).
    ///
    /// - Parameters:
    ///   - now: when the error arrived.
    ///   - options: the cache's rules.
    package func mayReplaceError(now: Timestamp, options: CacheOptions) -> Bool {
        staleAllowance(for: CacheControl(), directive: .default, now: now, options: options).onError
    }
}

/// What a request requires of a stored response's age (RFC 9111 §5.2.1), by its fields and the call.
struct FreshnessDemand {
    var asksValidation: Bool
    private let maxAge: Int64?
    private let minFresh: Int64
    private let maxStale: Int64
    private let statesMaxStale: Bool

    /// Whether nothing is required beyond freshness, and nothing is said about staleness.
    var isPlain: Bool { !asksValidation && maxAge == nil && minFresh == 0 && !statesMaxStale }

    /// - Parameter isImmutable: whether the response is fresh and says that it will not change while it is (RFC 8246).
    init(_ cacheControl: CacheControl, directive: CacheDirective, isImmutable: Bool) {
        // max-age=0 is how a reload is requested, so even a response of age 0 is confirmed first, unless it is immutable.
        let isReload = cacheControl.maxAge == 0
        asksValidation = directive.revalidate || cacheControl.noCache != .absent || isReload && !isImmutable
        maxAge = isReload && isImmutable ? nil : cacheControl.maxAge
        minFresh = max(cacheControl.minFresh ?? 0, directive.minFresh?.wholeSeconds ?? 0)
        let tolerance =
            directive.maxStale.map { CacheControl.StaleTolerance.seconds(max(0, $0.wholeSeconds)) }
            ?? cacheControl.maxStale
        statesMaxStale = tolerance != .absent
        maxStale =
            switch tolerance {
            case .absent: 0
            case .any: .max
            case .seconds(let seconds): seconds
            }
    }

    func accepts(_ standing: FreshnessStanding) -> Bool {
        guard !asksValidation else { return false }
        let (age, lifetime) = (standing.age, standing.lifetime)
        if minFresh > 0, lifetime - min(age, lifetime) < minFresh { return false }
        let pastLifetime = standing.isStale ? standing.staleness : nil
        let pastMaxAge = maxAge.flatMap { age > $0 ? age - $0 : nil }
        guard pastLifetime != nil || pastMaxAge != nil else { return true }
        return maxStale > 0 && max(pastLifetime ?? 0, pastMaxAge ?? 0) <= maxStale
    }
}

/// When a stored response that is not fresh enough may still be served (RFC 5861, RFC 9111 §4.2.4).
///
/// Anything that forbids it overrides everything that allows it: `must-revalidate` and unqualified `no-cache` of the response, in a
/// shared cache also `proxy-revalidate` and `s-maxage`, and a request or call that asks for validation.
package struct StaleAllowance: Sendable, Hashable {
    /// While a revalidation runs in the background (RFC 5861 §3).
    package let whileRevalidating: Bool

    /// When the origin answers 500, 502, 503 or 504 (RFC 5861 §4); never if the stored response is such an error itself.
    package let onError: Bool

    /// When no response arrives at all (RFC 9111 §4.2.4); never if the stored response is such an error itself.
    package let whenDisconnected: Bool

    /// In no case.
    package static let none = StaleAllowance(whileRevalidating: false, onError: false, whenDisconnected: false)

    init(whileRevalidating: Bool, onError: Bool, whenDisconnected: Bool) {
        self.whileRevalidating = whileRevalidating
        self.onError = onError
        self.whenDisconnected = whenDisconnected
    }

    /// Decides for one stored response and one request.
    ///
    /// - Parameter options: with the rules for the response applied.
    init(
        _ stored: StoredResponse,
        request: CacheControl,
        demand: FreshnessDemand,
        standing: FreshnessStanding,
        options: CacheOptions
    ) {
        guard !stored.forbidsStale(options), !demand.asksValidation else {
            self = .none
            return
        }
        let staleness = standing.staleness
        // With a lifetime fixed by the cache, the response has no influence on what follows it.
        let told = options.fixedLifetime == nil ? stored.facts : nil
        let revalidating = told?.staleWhileRevalidate ?? options.staleWhileRevalidate.wholeSeconds
        let asked = request.staleIfError
        let onError =
            told?.staleIfError.map { max($0, asked ?? $0) } ?? asked ?? options.staleIfError.wholeSeconds
        // Without either, nobody knows whether the response was valid for more than a moment.
        let hasStanding = stored.hasValidator || stored.facts.lifetime(options).source != .none
        let ownLimit = hasStanding ? options.staleWhenDisconnected.wholeSeconds : 0
        let disconnected = max(ownLimit, onError)
        // A stored error is no better than the failure that it would replace.
        let isError = stored.head.status.isOriginError
        self.init(
            // A caller with limits of its own would not accept a response that is still being refreshed.
            whileRevalidating: standing.isStale && staleness <= revalidating && revalidating > 0 && demand.isPlain,
            onError: onError > 0 && staleness <= onError && !isError,
            whenDisconnected: disconnected > 0 && staleness <= disconnected && !isError
        )
    }

    /// The reason for serving the stored response after a failure; nil if that is not allowed.
    ///
    /// If a request is not sent because the server asked for fewer, the rule for the response that asked applies.
    ///
    /// - Parameters:
    ///   - failure: how the last attempt failed.
    ///   - isImpatient: whether the caller accepts a stale response instead of waiting; false by default.
    package func reason(after failure: AttemptFailure, isImpatient: Bool = false) -> CacheReason? {
        if failure.kind == .throttled {
            if onError { return .staleIfError }
            return isImpatient && whenDisconnected ? .patience : nil
        }
        return failure.isDisconnection && whenDisconnected ? .disconnected : nil
    }
}

extension StatusCode {
    /// Whether stale-if-error applies to the status: 500, 502, 503 or 504 (RFC 5861 §4).
    public var isOriginError: Bool {
        switch rawValue {
        case 500, 502, 503, 504: true
        default: false
        }
    }
}

extension AttemptFailure {
    /// Whether the origin could not be reached, so that the cache counts as disconnected (RFC 9111 §4.2.4). A refused certificate,
    /// a request that cannot be sent, or an invalid response does not count.
    package var isDisconnection: Bool {
        guard progress < .headReceived else { return false }
        return switch kind {
        case .resolve, .connect, .timeout, .tls, .connectionLost, .refused, .protocolError, .offline, .other: true
        default: false
        }
    }
}
