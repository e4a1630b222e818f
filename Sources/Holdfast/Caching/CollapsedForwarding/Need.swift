// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import HoldfastSemantics
internal import HoldfastStorage

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// What a call brings to the exchange that it needs.
struct Need: Sendable {
    /// The request as it left the hooks above, without conditions of the cache's own.
    let request: URLRequest
    let lookup: CacheLookup
    /// Why the origin is asked.
    let reason: CacheReason
    /// The stored responses whose validators are sent.
    let offered: [HeldResponse]
    /// The stored part that the request is to complete.
    let completion: Completion?
    /// What may stand in stale, and when.
    let standIn: CacheCandidate?
    let heldStandIn: HeldResponse?
    let staleAllowance: StaleAllowance
    /// What was stored under the key by then.
    let entries: [StoredEntry]
    /// The names by which stored responses of the key vary.
    let nominated: [String]

    init(
        _ request: URLRequest,
        _ lookup: CacheLookup,
        _ judgement: ReuseJudgement,
        _ candidates: [CacheCandidate],
        _ held: HeldResponse?,
        offered: [HeldResponse],
        completion: Completion? = nil
    ) {
        self.request = request
        self.completion = completion
        self.lookup = lookup
        reason = judgement.reason
        self.offered = offered
        standIn = judgement.selected.map { candidates[$0] }
        heldStandIn = held
        staleAllowance = judgement.staleAllowance
        entries = candidates.map(\.entry)
        nominated = Array(Set(candidates.flatMap(\.stored.nominated.names))).sorted()
    }

    /// The same need, of a revalidation that is for the store alone.
    var withoutOwnValidators: Need {
        var request = request
        for name in CacheLookup.ownValidators { request.setValue(nil, forHTTPHeaderField: name.rawName) }
        return Need(of: self, request: request, lookup: lookup.withoutOwnValidators)
    }

    private init(of need: Need, request: URLRequest, lookup: CacheLookup) {
        self.request = request
        self.lookup = lookup
        reason = need.reason
        offered = need.offered
        completion = need.completion
        standIn = need.standIn
        heldStandIn = need.heldStandIn
        staleAllowance = need.staleAllowance
        entries = need.entries
        nominated = need.nominated
    }

    /// The request with the cache's own conditions, or for the part that is missing.
    func prepared(in context: inout CallContext, _ cache: HTTPCache) -> URLRequest {
        var fields: HeaderFields
        if let completion {
            fields = completion.fields
            context[Completion.self] = completion
        } else if !offered.isEmpty {
            fields = Precondition.mergedConditionalFields(
                caller: lookup.head.fields,
                candidates: offered.map(\.stored)
            )
            context[OfferedResponses.self] = OfferedResponses(responses: offered)
        } else {
            return self.request
        }
        var replaced: [FieldName] = [.ifNoneMatch, .ifModifiedSince]
        if let completion {
            replaced += [.range, .ifRange]
            // A coding that a transport asks for by itself would give other bytes than those that are stored.
            let stored = completion.held.stored
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
        let begun = context
        context.validation = OfferedValidation(
            own: own,
            replaced: replaced,
            asksPart: completion != nil,
            isAnswered: { isAnswered(by: $0, begun, cache) },
            renewed: { context in
                let place = context.currentHook
                context.currentHook = begun.currentHook
                defer { context.currentHook = place }
                return await CachingHook(cache).renewed(self, &context)
            }
        )
        return request
    }

    /// Whether a response answers what was asked in the caller's place, so that the caller can be answered from it.
    private func isAnswered(by response: Response, _ context: CallContext, _ cache: HTTPCache) -> Bool {
        let now = response.responseTime ?? context.clock.timestamp
        if let completion {
            if response.status == .rangeNotSatisfiable || response.status == .notModified { return false }
            guard response.status == .partialContent else { return true }
            // With a part that was given to somebody else nothing of this principal's may be joined.
            return lookup.partition(sentFor: response, in: context, of: cache) == lookup.principal
                && completion.fits(response.head, to: lookup.head, at: now, contentDecoded: response.contentDecoded)
        }
        guard response.status == .notModified else { return true }
        let stored = offered.map(\.stored)
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
}

/// The stored responses whose validators were sent to the origin, bodies at hand.
struct OfferedResponses: Sendable {
    let responses: [HeldResponse]
}
