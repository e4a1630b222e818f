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
        bypassReason(request, directive, CacheControl(request: request.fields), hasContentKey)
    }

    package static func bypassReason(
        _ request: RequestHead,
        _ directive: CacheDirective,
        _ cacheControl: CacheControl,
        _ hasContentKey: Bool
    ) -> Reason? {
        guard request.method == .get || request.method == .head || hasContentKey else { return .method }
        if request.namesOtherHost { return .host }
        if request.asksOrigin || request.statesUnfitCondition { return .originCondition }
        if directive.noStore || cacheControl.noStore { return .requestNoStore }
        if directive.reload { return .reload }
        return nil
    }
}
