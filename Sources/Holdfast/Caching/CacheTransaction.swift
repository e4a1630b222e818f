// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import HoldfastSemantics
internal import HoldfastStorage

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// One call's way through a cache: what it was looked up by, what the origin is asked for it, and what came of that.
///
/// The call owns it until an exchange begins, and then the exchange does.
struct CacheTransaction: Sendable {
    private let first: CopyOnWrite<CacheLookup>
    /// What the origin is asked; nil while nothing is, and where the request bypasses the cache.
    private(set) var fetchRequest: FetchRequest?
    /// Whether what is stored for the request is no error, so that a failure does not take its place by the cache's own choice.
    private(set) var holdsUsable = false
    /// Says to the other processes that share the store that this one fetches.
    var fillLease: HeldFillLease?
    /// What the cache made of the response.
    var outcome: ResponseOutcome?

    init(_ lookup: CacheLookup) {
        first = CopyOnWrite(lookup)
    }

    /// What the request was looked up by.
    var lookup: CacheLookup { fetchRequest?.lookup ?? first.value }

    /// Notes what the origin is asked.
    mutating func begin(_ fetchRequest: FetchRequest) {
        self.fetchRequest = fetchRequest
        let status = fetchRequest.staleCandidate?.stored.head.status
        holdsUsable = status.map { $0.rawValue < 400 } ?? false
    }
}

/// What a call asks the origin for.
///
/// A class, since many hold it and nobody changes it.
final class FetchRequest: Sendable {
    /// The request as it left the hooks above, without conditions of the cache's own.
    let request: URLRequest
    let lookup: CacheLookup
    /// Why the origin is asked.
    let reason: CacheReason
    /// The stored responses whose validators are sent.
    let offered: [LoadedResponse]
    /// The stored part that the request is to complete.
    let completion: Completion?
    /// What may be served stale, and when.
    let staleCandidate: CacheCandidate?
    let staleAllowance: StaleAllowance
    /// What was stored under the key by then.
    let entries: [StoredEntry]
    /// The names by which stored responses of the key vary.
    let nominated: [String]

    init(
        _ request: URLRequest,
        lookup: CacheLookup,
        judgement: ReuseJudgement,
        candidates: [CacheCandidate],
        offered: [LoadedResponse] = [],
        completion: Completion? = nil
    ) {
        self.request = request
        self.completion = completion
        self.lookup = lookup
        reason = judgement.reason
        self.offered = offered
        staleCandidate = judgement.selected.map { candidates[$0] }
        staleAllowance = judgement.staleAllowance
        entries = candidates.map(\.entry)
        nominated = Array(Set(candidates.flatMap(\.stored.nominated.names))).sorted()
    }

    /// The body of what may be served stale, where it is at hand: what was selected is offered first.
    var loadedStale: LoadedResponse? { offered.first }

    /// The same, of a revalidation that is for the store alone.
    var withoutOwnValidators: FetchRequest {
        var request = request
        for name in CacheLookup.ownValidators { request.setValue(nil, forHTTPHeaderField: name.rawName) }
        return FetchRequest(of: self, request: request, lookup: lookup.withoutOwnValidators)
    }

    private init(of fetchRequest: FetchRequest, request: URLRequest, lookup: CacheLookup) {
        self.request = request
        self.lookup = lookup
        reason = fetchRequest.reason
        offered = fetchRequest.offered
        completion = fetchRequest.completion
        staleCandidate = fetchRequest.staleCandidate
        staleAllowance = fetchRequest.staleAllowance
        entries = fetchRequest.entries
        nominated = fetchRequest.nominated
    }

    /// The request with the cache's own conditions, or for the part that is missing; notes in the context what is asked.
    func begin(in context: inout CallContext, for cache: HTTPCache) -> URLRequest {
        context.transaction?.begin(self)
        var fields: HeaderFields
        if let completion {
            fields = completion.fields
        } else if !offered.isEmpty {
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
            // A coding that a transport asks for by itself would give other bytes than those that are stored.
            let stored = completion.loaded.stored
            let namesCoding = if case .entityTag? = StrongValidator(stored) { true } else { false }
            if request.value(forHTTPHeaderField: "Accept-Encoding") == nil || !namesCoding,
                !stored.head.fields.contains(.contentEncoding)
            {
                replaced.append(.acceptEncoding)
                fields[.acceptEncoding] = "identity"
            }
        }
        var request = self.request
        var own: [FieldName: String] = [:]
        for name in replaced {
            own[name] = request.value(forHTTPHeaderField: name.rawName)
            request.setValue(fields[name], forHTTPHeaderField: name.rawName)
        }
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

/// The conditions, or the range, that a cache has sent in the place of the caller's own.
///
/// They hold over all attempts, unless what they ask about was replaced or removed while the exchange waited (RFC 9111 §4.3.3).
struct AddedConditions: Sendable {
    fileprivate let fetchRequest: FetchRequest
    fileprivate let cache: HTTPCache
    /// The place of the cache's hook.
    fileprivate let hook: Int
    /// The fields that the caller's request had itself, of those that were replaced.
    fileprivate let own: [FieldName: String]
    fileprivate let replaced: [FieldName]

    /// Whether they ask for a part, which is not what the caller will be given.
    var asksPart: Bool { fetchRequest.completion != nil }

    /// The request as the caller stated it.
    func withdrawn(from request: URLRequest) -> URLRequest {
        var request = request
        for name in replaced { request.setValue(own[name], forHTTPHeaderField: name.rawName) }
        return request
    }

    /// Whether a response answers what was asked in the caller's place, so that the caller can be answered from it.
    func isAnswered(by response: Response, in context: CallContext) -> Bool {
        let lookup = fetchRequest.lookup
        let now = response.responseTime ?? context.clock.timestamp
        if let completion = fetchRequest.completion {
            if response.status == .rangeNotSatisfiable || response.status == .notModified { return false }
            guard response.status == .partialContent else { return true }
            // With a part that was given to somebody else nothing of this principal's may be joined.
            return lookup.partition(sentFor: response, in: context, of: cache) == lookup.principal
                && completion.fits(response.head, to: lookup.head, at: now, contentDecoded: response.contentDecoded)
        }
        guard response.status == .notModified else { return true }
        let stored = fetchRequest.offered.map(\.stored)
        switch Precondition.answer(to: response.head, request: lookup.head, candidates: stored, now: now) {
        case .notModified, .relay: return true
        case .resend: return false
        case .full(let index):
            // To a credential that was added on the way a date may confirm another representation than the stored one; a strong tag
            // names the same bytes, whoever asks.
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

    /// The request of a retry, with conditions that fit what is stored by then.
    ///
    /// Whether anything changed is known without a look-up, so that a retry is none, and counts as none, in the common case.
    ///
    /// - Parameter request: as it was sent before; what hooks below the cache have set in it stays.
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
        for name in replaced + (context.conditions?.replaced ?? []) {
            request.setValue(prepared.value(forHTTPHeaderField: name.rawName), forHTTPHeaderField: name.rawName)
        }
        return request
    }
}

/// What the cache made of a response on its way up.
struct ResponseOutcome: Sendable {
    /// The stored response that a 304 selected.
    var loaded: LoadedResponse?
    /// The response as it is stored, or as it would be if the store could take it; nil where the rules forbid to store it.
    var storable: StoredResponse?
    /// The entry it is stored as, or would be.
    var entry: AdmittedEntry?
    /// Why nothing of the response was stored; nil where something was, or is being stored.
    var notStored: CacheReason?
    /// The entry that is being written while the body passes.
    var storing: StoringBody?
    /// Whether the caller's acceptance decides whether the entry is committed.
    var awaitsVerdict = false
    /// Whether the rules let the answer be given to others that wait for the same.
    var mayBeShared = true

    /// What became of the response, for explanations.
    var storage: CacheDecision.Storage? {
        if let notStored { return .notStored(notStored) }
        guard loaded == nil else { return nil }
        return storing == nil && !awaitsVerdict ? .stored : .storing
    }

    /// Whether the response may be stored, whether or not the store took it.
    var isStorable: Bool { loaded != nil || storable != nil }

    /// Whether the response may answer other calls of the same key.
    var isShareable: Bool { isStorable && mayBeShared }

    /// Whether what was sent shows the principal and the target that were looked up, as all callers of the key have them.
    var isForWhoAsked: Bool {
        switch notStored {
        // Nobody knows for whom a response was made that no exchange has brought.
        case .otherPrincipal, .otherTarget, .hiddenRequest, .synthesized: false
        default: true
        }
    }
}
