// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import HoldfastSemantics
internal import HoldfastStorage

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// One call's path through a cache: its lookup, the request to the origin, and the result.
///
/// Owned by the call until an exchange begins, and then by the exchange.
struct CacheTransaction: Sendable {
    private let first: CopyOnWrite<CacheLookup>
    /// The request to the origin; nil while there is none, and if the request bypasses the cache.
    var fetchRequest: FetchRequest?
    /// Tells the other processes that share the store that this one is fetching.
    var fillLease: HeldFillLease?
    /// What the cache did with the response.
    var outcome: ResponseOutcome?

    init(_ lookup: CacheLookup) { first = CopyOnWrite(lookup) }

    /// The lookup of the request.
    var lookup: CacheLookup { fetchRequest?.lookup ?? first.value }

    /// Whether what is stored for the request is not an error, so that a failure does not replace it by the cache's own choice.
    var holdsUsable: Bool { (fetchRequest?.staleCandidate?.stored.head.status.rawValue).map { $0 < 400 } ?? false }
}

/// What a call asks the origin for.
///
/// A class, since it has many holders and never changes.
final class FetchRequest: Sendable {
    /// The request as it left the hooks above, without the cache's own conditions.
    let request: URLRequest
    let lookup: CacheLookup
    /// The stored responses whose validators are sent.
    let offered: [LoadedResponse]
    /// The stored part that the request is to complete.
    let completion: Completion?
    private let reuse: ReasonedReuseDecision
    private let candidates: [CacheCandidate]

    init(
        _ request: URLRequest,
        lookup: CacheLookup,
        reuse: ReasonedReuseDecision,
        candidates: [CacheCandidate],
        offered: [LoadedResponse] = [],
        completion: Completion? = nil
    ) {
        self.request = request
        self.lookup = lookup
        self.reuse = reuse
        self.candidates = candidates
        self.offered = offered
        self.completion = completion
    }

    /// Why the origin is asked.
    var reason: CacheReason { reuse.reason }

    /// What may be served stale, and when.
    var staleCandidate: CacheCandidate? { reuse.selected.map { candidates[$0] } }
    var staleAllowance: StaleAllowance { reuse.staleAllowance }

    /// Whether it may be served stale for this reason now: a window may have ended since the decision.
    func allowsStale(_ reason: CacheReason, now: Timestamp, options: CacheOptions) -> Bool {
        guard let stored = staleCandidate?.stored else { return false }
        let current = stored.staleAllowance(
            for: lookup.cacheControl,
            directive: lookup.directive,
            now: now,
            options: options
        )
        return [staleAllowance, current].allSatisfy { reason == .staleIfError ? $0.onError : $0.whenDisconnected }
    }

    /// What was stored under the key at that time.
    var entries: [StoredEntry] { candidates.map(\.entry) }

    /// The names in Vary of the key's stored responses.
    var nominated: [String] { Set(candidates.flatMap(\.stored.nominated.names)).sorted() }

    /// The body of what may be served stale, if it is loaded: the selected response is offered first.
    var loadedStale: LoadedResponse? { offered.first }

    /// The same, for a revalidation for the store alone: without the caller's validators, since a 304 to them would say nothing about
    /// what is stored, and without its range if all of the response is stored, which a part must not replace.
    var forRefresh: FetchRequest {
        var names: [FieldName] = [.ifNoneMatch, .ifModifiedSince]
        if let staleCandidate, staleCandidate.stored.ranges == nil { names += [.range, .ifRange] }
        var request = request
        request.setFields(names.map { ($0, nil) })
        return FetchRequest(
            request,
            lookup: lookup.removing(names),
            reuse: reuse,
            candidates: candidates,
            offered: offered,
            completion: completion
        )
    }

    /// The same without anything stored that a response could confirm or complete.
    fileprivate var unconditional: FetchRequest {
        FetchRequest(request, lookup: lookup, reuse: reuse, candidates: candidates)
    }

    /// The request with the cache's own conditions, or for the missing part; records in the context what is requested.
    func begin(in context: inout CallContext, for cache: HTTPCache) -> URLRequest {
        context.transaction?.fetchRequest = self
        var fields: HeaderFields
        if let completion {
            fields = completion.fields
        } else if !offered.isEmpty, lookup.head.method.isSafe {
            // A false condition on a POST would have to be answered with 412 (RFC 9110 §13.1.2).
            fields = Precondition.mergedConditionalFields(
                caller: lookup.head.fields,
                candidates: offered.map(\.stored)
            )
        } else {
            return self.request
        }
        var replaced: [FieldName] = [.ifNoneMatch, .ifModifiedSince]
        if let completion {
            replaced += [.range, .ifRange]
            // A coding that a transport adds by itself would give other bytes than the stored ones.
            let stored = completion.loaded.stored
            let namesCoding = if case .entityTag? = StrongValidator(stored) { true } else { false }
            if request.field(.acceptEncoding) == nil || !namesCoding,
                !stored.head.fields.contains(.contentEncoding)
            {
                replaced.append(.acceptEncoding)
                fields[.acceptEncoding] = "identity"
            }
        }
        var request = self.request
        let own = request.setFields(replaced.map { ($0, fields[$0]) })
        context.conditions = AddedConditions(
            fetchRequest: self,
            cache: cache,
            hook: context.currentHook,
            own: own,
            replaced: replaced
        )
        return request
    }
}

/// The conditions, or the range, that a cache has sent in place of the caller's own.
///
/// They stay for all attempts, unless their stored response was replaced or removed while the exchange waited (RFC 9111 §4.3.3).
struct AddedConditions: Sendable {
    fileprivate let fetchRequest: FetchRequest
    fileprivate let cache: HTTPCache
    /// The position of the cache's hook.
    fileprivate let hook: Int
    /// The caller's values of the fields that were replaced.
    fileprivate let own: [FieldName: String]
    fileprivate let replaced: [FieldName]

    /// Whether they ask for a part, which is not what the caller will get.
    var asksPart: Bool { fetchRequest.completion != nil }

    /// The request with the caller's own conditions.
    func withdrawn(from request: URLRequest) -> URLRequest {
        var request = request
        request.setFields(replaced.map { ($0, own[$0]) })
        return request
    }

    /// Whether a response answers the cache's conditions, so that the caller can be answered from it.
    func isAnswered(by response: Response, in context: CallContext) -> Bool {
        let lookup = fetchRequest.lookup
        let now = response.responseTime ?? context.clock.timestamp
        if let completion = fetchRequest.completion {
            if response.status == .rangeNotSatisfiable || response.status == .notModified { return false }
            guard response.status == .partialContent else { return true }
            // A part that was sent to another principal must not be joined with one of this principal's responses.
            return lookup.partition(sentFor: response, in: context, of: cache) == lookup.principal
                && completion.fits(response.head, to: lookup.head, at: now, contentDecoded: response.contentDecoded)
        }
        guard response.status == .notModified else { return true }
        let stored = fetchRequest.offered.map(\.stored)
        switch Precondition.answer(to: response.head, request: lookup.head, candidates: stored, now: now) {
        case .notModified, .relay: return true
        case .resend: return false
        case .full(let index):
            // For a credential added on the way, a date may confirm another representation than the stored one; a strong tag
            // identifies the same bytes for everyone.
            if !stored[index].hasStrongTag,
                lookup.partition(sentFor: response, in: context, of: cache) != lookup.principal
            {
                return false
            }
            if stored[index].ranges == nil { return true }
            let freshened = stored[index].freshened(
                by: response.head,
                requestTime: now,
                responseTime: now,
                mode: cache.options.mode
            )
            return freshened.hasAll(askedBy: lookup.head)
        }
    }

    /// Whether a request goes to another URI than the one that was looked up: a tag or a date says nothing about another
    /// resource (RFC 9110 §8.8.1).
    func areForeign(to prepared: URLRequest, in context: CallContext) -> Bool {
        prepared.url != fetchRequest.request.url
            && context.head(of: prepared)?.target != fetchRequest.lookup.head.target
    }

    /// Withdraws the conditions for the whole exchange: its response says nothing about what is stored.
    func withdraw(from request: inout URLRequest, context: inout CallContext) {
        let place = context.currentHook
        context.currentHook = hook
        context.transaction?.fetchRequest = fetchRequest.unconditional
        context.currentHook = place
        context.conditions = nil
        request = withdrawn(from: request)
    }

    /// The request of a retry, with conditions that fit what is stored by then.
    ///
    /// It is known without a lookup whether anything has changed, so usually a retry makes and counts no lookup.
    ///
    /// - Parameter request: as it was sent before; fields set by hooks below the cache stay.
    func renewed(in request: URLRequest, context: inout CallContext) async -> URLRequest {
        let target = fetchRequest.lookup.key.target
        guard
            !cache.writer.holds(fetchRequest.lookup.generation, for: target)
                || cache.fetches.hasCompleted(fetchRequest.lookup.key, since: fetchRequest.lookup.completions)
        else { return request }
        let place = context.currentHook
        context.currentHook = hook
        defer { context.currentHook = place }
        let renewed = await CachingHook(cache).decideAgain(on: fetchRequest, context: context)
        context.conditions = nil
        let prepared = renewed.begin(in: &context, for: cache)
        var request = request
        let names = replaced + (context.conditions?.replaced ?? [])
        request.setFields(names.map { ($0, prepared.field($0)) })
        return request
    }
}

/// What the cache did with a response on its way up.
struct ResponseOutcome: Sendable {
    /// The stored response that a 304 selected.
    var loaded: LoadedResponse?
    /// The response as it is stored, or as it would be if the store could take it; nil if the rules forbid storing it.
    var storable: StoredResponse?
    /// The entry for it, stored or not.
    var entry: AdmittedEntry?
    /// Why nothing of the response was stored; nil if something was, or is being stored.
    var notStored: CacheReason?
    /// The entry that is being written while the body is read.
    var storing: StoringBody?
    /// Whether the caller's acceptance decides whether the entry is committed.
    var awaitsVerdict = false
    /// Whether the rules allow other calls that wait for the same to get the answer.
    var mayBeShared = true
    /// Where in the body the part is that completes what is stored; nil: the body has no stored bytes, or only such.
    var part: Range<Int>?

    /// Where in the body the bytes are that the exchange brought.
    var networkInterval: Range<Int> {
        loaded != nil || notStored == .synthesized ? 0..<0 : part ?? 0..<Int.max
    }

    /// What happened to the response, for explanations.
    var storage: CacheDecision.Storage? {
        if let notStored { return .notStored(notStored) }
        guard loaded == nil else { return nil }
        return storing == nil && !awaitsVerdict ? .stored : .storing
    }

    /// Whether the response may be stored, whether or not the store took it.
    var isStorable: Bool { loaded != nil || storable != nil }

    /// Whether the response may answer other calls of the same key.
    var isShareable: Bool { isStorable && mayBeShared }

    /// Whether the sent request had the principal and the target that were looked up, which all callers of the key share.
    var isForWhoAsked: Bool {
        switch notStored {
        // If no exchange brought a response, it is unknown whom it is for.
        case .otherPrincipal, .otherTarget, .hiddenRequest, .synthesized: false
        default: true
        }
    }
}
