// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// How a request is to be answered (RFC 9111 §4).
public enum ReuseDecision: Sendable, Hashable {
    /// Answer from the candidate with this index; its age in seconds, and whether it is past its lifetime.
    case reuse(candidate: Int, age: Int64, isStale: Bool)
    /// Answer from the first of these candidates although it is stale, and revalidate them in the background (RFC 5861 §3).
    case reuseWhileRevalidating(candidates: [Int], age: Int64)
    /// Send a conditional request for these candidates, the selected one first.
    case revalidate(candidates: [Int])
    /// Send a request for the missing interval of this candidate, with these fields in place of the caller's Range and
    /// conditions, and join what comes (RFC 9111 §3.4).
    case complete(candidate: Int, missing: Range<Int64>, fields: HeaderFields)
    /// Send the request as it is.
    case forward(Reason)
    /// Send nothing and answer 504 (RFC 9111 §5.2.1.7).
    case unsatisfiable(Reason)

    /// Why the store does not answer.
    public typealias Reason = CacheReason

    /// Decides how to answer a request from the stored responses of its key.
    ///
    /// A pure function: a store looks up, this judges, a hook obeys. HEAD may be answered by a stored GET.
    ///
    /// - Parameters:
    ///   - request: the request, fields the transport adds included.
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
        ReuseJudgement(
            request: request,
            candidates: candidates,
            directive: directive,
            now: now,
            options: options,
            secret: secret
        ).decision
    }

    /// The candidate that was selected, to answer from or to validate; nil where none was.
    public var selectedCandidate: Int? {
        switch self {
        case .reuse(let candidate, _, _), .complete(let candidate, _, _): candidate
        case .revalidate(let candidates), .reuseWhileRevalidating(let candidates, _): candidates.first
        case .forward, .unsatisfiable: nil
        }
    }

    /// Why a request is not answered from any store, whatever is stored; nil where a look-up makes sense.
    ///
    /// - Parameters:
    ///   - request: the request.
    ///   - directive: what the call asks.
    ///   - hasContentKey: whether it is a QUERY or an opted-in POST whose content is in the key; false by default.
    public static func bypassReason(
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

/// A decision on reuse together with what it was made from: which response was looked at, and when it may stand in stale.
public struct ReuseJudgement: Sendable, Hashable {
    /// How the request is to be answered.
    public let decision: ReuseDecision

    /// The candidate that matches the request, whether or not it can be used as it is; nil where none does.
    public let selected: Int?

    /// Why: for a reuse, why it may be; else why the store does not answer.
    public let reason: CacheReason

    /// When the selected candidate may be served stale.
    public let staleAllowance: StaleAllowance

    /// Judges a request against what is stored for its key; as ``ReuseDecision/decide(request:candidates:directive:now:options:secret:)``.
    ///
    /// - Parameters:
    ///   - request: the request.
    ///   - candidates: what is stored under its primary key, in any order.
    ///   - directive: what the call asks of the cache.
    ///   - now: the time by which ages are judged.
    ///   - options: the cache's rules.
    ///   - secret: the store's secret.
    ///   - hasContentKey: whether the request is a QUERY or an opted-in POST whose content is in the key.
    public init(
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
    ///   - cacheControl: the request's.
    ///   - isOwn: which of the candidates are of the requester's own partition; empty: all.
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
        // A part that lacks what is asked for is completed; an older response that has all of it is no answer (RFC 9111 §4).
        guard candidates[index].hasAll(askedBy: request) else {
            let completion = ReuseJudgement.completion(of: candidates[index], index, for: request)
            self.init(mayNotSend ? .unsatisfiable(.partial) : completion, reason: .partial)
            return
        }
        let selected = candidates[index]
        let standing = selected.standing(now: now, options: options)
        let (age, isStale) = (standing.age, standing.isStale)
        // With a lifetime of the cache's own nothing counts that the response says of its freshness.
        let heedsResponse = !selected.hasFixedLifetime(options)
        func offered() -> [Int] {
            ReuseJudgement.offered(index, among: candidates, to: request, options: options)
        }
        // Not even a caller that takes anything stored gets it unconfirmed.
        if let reason = selected.confirmationReason {
            let decision: ReuseDecision =
                mayNotSend || !selected.hasValidator
                ? unanswered(reason) : .revalidate(candidates: offered())
            self.init(decision, reason: reason, selected: index)
            return
        }
        if directive.ignoresAge {
            let reason: CacheReason = isStale ? .acceptedStale : .fresh
            self.init(.reuse(candidate: index, age: age, isStale: isStale), reason: reason, selected: index)
            return
        }
        var demand = FreshnessDemand(
            cacheControl,
            directive: directive,
            isImmutable: heedsResponse && selected.cacheControl.immutable && !isStale
        )
        let allowance = StaleAllowance(
            selected,
            request: cacheControl,
            demand: demand,
            standing: standing,
            options: options
        )
        // What a cache with other options kept against the server's word is not used by one that heeds it.
        if heedsResponse, selected.cacheControl.noCache == .unqualified || selected.isAgainstItsWord {
            demand.asksValidation = true
        }
        if isStale, selected.forbidsStale(options) { demand.asksValidation = true }
        if demand.accepts(standing) {
            let reason: CacheReason = isStale ? .acceptedStale : .fresh
            self.init(.reuse(candidate: index, age: age, isStale: isStale), reason: reason, selected: index)
            return
        }
        if allowance.whileRevalidating {
            let decision: ReuseDecision =
                mayNotSend
                ? .reuse(candidate: index, age: age, isStale: true)
                : .reuseWhileRevalidating(candidates: offered(), age: age)
            self.init(decision, reason: .staleWhileRevalidate, selected: index, staleAllowance: allowance)
            return
        }
        let reason: CacheReason = isStale ? .stale : .mustValidate
        let decision =
            mayNotSend || !selected.hasValidator ? unanswered(reason) : ReuseDecision.revalidate(candidates: offered())
        self.init(decision, reason: reason, selected: index, staleAllowance: allowance)
    }

    /// The same judgement with another reason where it is a miss because nothing is stored.
    package func replacingNotStored(by reason: CacheReason) -> ReuseJudgement {
        switch decision {
        case .forward(.notStored): ReuseJudgement(.forward(reason), reason: reason)
        case .unsatisfiable(.notStored): ReuseJudgement(.unsatisfiable(reason), reason: reason)
        default: self
        }
    }

    /// The candidates whose validators are sent, the selected one first.
    private static func offered(
        _ index: Int,
        among candidates: [StoredResponse],
        to request: RequestHead,
        options: CacheOptions
    ) -> [Int] {
        let others = candidates.indices.filter {
            $0 != index && candidates[$0].entityTag != nil && candidates[$0].hasAll(askedBy: request)
                && !options.neverStores(candidates[$0])
        }
        return [index] + others.prefix(options.maximumVariants - 1)
    }

    /// How what a stored part lacks is asked for; a request for several ranges goes out as it came.
    private static func completion(of stored: StoredResponse, _ index: Int, for request: RequestHead) -> ReuseDecision {
        // A condition of the caller's may spare all of it, and only the origin can judge it for content that lacks bytes.
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
}

/// What a request demands of a stored response's age (RFC 9111 §5.2.1), fields and call taken together.
struct FreshnessDemand {
    var asksValidation: Bool
    private let maxAge: Int64?
    private let minFresh: Int64
    private let maxStale: Int64

    /// Whether nothing is demanded beyond freshness.
    var isPlain: Bool { !asksValidation && maxAge == nil && minFresh == 0 }

    /// - Parameter isImmutable: whether the response is fresh and says that it will not change while it is (RFC 8246).
    init(_ cacheControl: CacheControl, directive: CacheDirective, isImmutable: Bool) {
        // max-age=0 is how a reload is spelled, so even a response of age 0 is confirmed first, unless it is immutable.
        let isReload = cacheControl.maxAge == 0
        asksValidation = directive.revalidate || cacheControl.noCache != .absent || isReload && !isImmutable
        maxAge = isReload && isImmutable ? nil : cacheControl.maxAge
        minFresh = max(cacheControl.minFresh ?? 0, directive.minFresh?.wholeSeconds ?? 0)
        if let tolerated = directive.maxStale {
            maxStale = max(0, tolerated.wholeSeconds)
        } else {
            maxStale =
                switch cacheControl.maxStale {
                case .absent: 0
                case .any: .max
                case .seconds(let seconds): seconds
                }
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
