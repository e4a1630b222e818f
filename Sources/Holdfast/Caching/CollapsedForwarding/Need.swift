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
        nominated = Array(Set(candidates.flatMap(\.stored.nominated.names))).sorted()
    }

    /// The request with the cache's own conditions, or for the part that is missing.
    func prepared(in context: inout CallContext) -> URLRequest {
        let fields: HeaderFields
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
        if completion != nil { replaced += [.range, .ifRange] }
        var request = self.request
        var own: [FieldName: String] = [:]
        for name in replaced {
            own[name] = request.value(forHTTPHeaderField: name.rawName)
            request.setValue(fields[name], forHTTPHeaderField: name.rawName)
        }
        let (lookup, completion, clock, sent) = (lookup, completion, context.clock, RequestHead(request))
        let stored = offered.map(\.stored)
        context.validation = OfferedValidation(own: own, replaced: replaced) { response in
            if let completion, let sent {
                if response.status == .rangeNotSatisfiable || response.status == .notModified { return false }
                return response.status != .partialContent
                    || completion.fits(
                        response.head,
                        to: sent,
                        at: clock.timestamp,
                        contentDecoded: response.contentDecoded
                    )
            }
            guard response.status == .notModified else { return true }
            let answer = Precondition.answer(
                to: response.head,
                request: lookup.head,
                candidates: stored,
                now: clock.timestamp
            )
            return answer != .resend
        }
        return request
    }
}

/// The stored responses whose validators were sent to the origin, bodies at hand.
struct OfferedResponses: Sendable {
    let responses: [HeldResponse]
}
