// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// How a request is to be answered (RFC 9111 §4).
public enum ReuseDecision: Sendable, Hashable {
    /// Answer from the candidate with this index; its age in seconds, and whether it is past its lifetime.
    case reuse(candidate: Int, age: Int64, isStale: Bool)
    /// Send a conditional request for these candidates, the selected one first.
    case revalidate(candidates: [Int])
    /// Send the request as it is.
    case forward(Reason)
    /// Send nothing and answer 504 (RFC 9111 §5.2.1.7).
    case unsatisfiable(Reason)

    /// Why the store does not answer.
    public struct Reason: RawRepresentable, Sendable, Hashable {
        /// The stable code, fit for metric labels.
        public let rawValue: String

        /// Creates a reason from its stable code.
        public init(rawValue: String) {
            self.rawValue = rawValue
        }

        /// The method is not answered from a store.
        public static let method = Reason(rawValue: "method")
        /// The request asks for a part or states a condition of its own.
        public static let conditionalOrPartial = Reason(rawValue: "conditional-or-partial")
        /// The call asks for a new response.
        public static let reload = Reason(rawValue: "reload")
        /// The request names another host than its URI.
        public static let host = Reason(rawValue: "host")
        /// The request has content, which its key does not tell.
        public static let content = Reason(rawValue: "content")
        /// The call or the request says no-store.
        public static let noStore = Reason(rawValue: "no-store")
        /// Nothing is stored for the URI.
        public static let notStored = Reason(rawValue: "not-stored")
        /// Something is stored, but for other values of the nominated fields (RFC 9111 §4.1).
        public static let noVariant = Reason(rawValue: "no-variant")
        /// The stored response is past its lifetime and has no validator.
        public static let stale = Reason(rawValue: "stale")
        /// The stored response is fresh, but request or response ask for validation and there is no validator.
        public static let mustValidate = Reason(rawValue: "must-validate")
    }

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
        let cacheControl = CacheControl(request: request.fields)
        let mayNotSend = directive.onlyIfCached || cacheControl.onlyIfCached
        func unanswered(_ reason: Reason) -> ReuseDecision {
            mayNotSend ? .unsatisfiable(reason) : .forward(reason)
        }
        if let reason = bypassReason(request, directive, cacheControl) { return unanswered(reason) }
        guard let index = VariantSelection.select(request, among: candidates, secret: secret) else {
            return unanswered(candidates.isEmpty ? .notStored : .noVariant)
        }
        let selected = candidates[index]
        let age = selected.currentAge(now: now)
        let lifetime = selected.freshnessLifetime(options).seconds
        let isStale = lifetime <= age
        if directive.ignoresAge { return .reuse(candidate: index, age: age, isStale: isStale) }
        var demand = FreshnessDemand(cacheControl, directive)
        if selected.cacheControl.noCache == .unqualified { demand.asksValidation = true }
        if isStale, selected.forbidsStale(options) { demand.asksValidation = true }
        if demand.accepts(age: age, lifetime: lifetime) {
            return .reuse(candidate: index, age: age, isStale: isStale)
        }
        if mayNotSend || !selected.hasValidator { return unanswered(isStale ? .stale : .mustValidate) }
        let others = candidates.indices.filter { $0 != index && candidates[$0].entityTag != nil }
        return .revalidate(candidates: [index] + others.prefix(options.maximumVariants - 1))
    }

    /// The candidate that was selected, to answer from or to validate; nil where none was.
    public var selectedCandidate: Int? {
        switch self {
        case .reuse(let candidate, _, _): candidate
        case .revalidate(let candidates): candidates.first
        case .forward, .unsatisfiable: nil
        }
    }

    /// Why a request is not answered from any store, whatever is stored; nil where a look-up makes sense.
    public static func bypassReason(request: RequestHead, directive: CacheDirective) -> Reason? {
        bypassReason(request, directive, CacheControl(request: request.fields))
    }

    private static func bypassReason(
        _ request: RequestHead,
        _ directive: CacheDirective,
        _ cacheControl: CacheControl
    ) -> Reason? {
        guard request.method == .get || request.method == .head else { return .method }
        if request.namesOtherHost { return .host }
        if request.isConditionalOrPartial { return .conditionalOrPartial }
        if directive.noStore || cacheControl.noStore { return .noStore }
        if directive.reload { return .reload }
        return nil
    }
}

/// What a request demands of a stored response's age (RFC 9111 §5.2.1), fields and call taken together.
struct FreshnessDemand {
    var asksValidation: Bool
    private let maxAge: Int64?
    private let minFresh: Int64
    private let maxStale: Int64

    init(_ cacheControl: CacheControl, _ directive: CacheDirective) {
        maxAge = cacheControl.maxAge
        // max-age=0 is how a reload is spelled, so even a response of age 0 is confirmed first.
        asksValidation = directive.revalidate || cacheControl.noCache != .absent || maxAge == 0
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

    func accepts(age: Int64, lifetime: Int64) -> Bool {
        guard !asksValidation else { return false }
        if minFresh > 0, lifetime - min(age, lifetime) < minFresh { return false }
        let pastLifetime = age >= lifetime ? age - lifetime : nil
        let pastMaxAge = maxAge.flatMap { age > $0 ? age - $0 : nil }
        guard pastLifetime != nil || pastMaxAge != nil else { return true }
        return maxStale > 0 && max(pastLifetime ?? 0, pastMaxAge ?? 0) <= maxStale
    }
}
