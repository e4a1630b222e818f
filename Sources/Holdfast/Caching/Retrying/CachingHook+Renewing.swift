// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import HoldfastSemantics
internal import HoldfastStorage

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// The conditions of a validation that is tried again (RFC 9111 §4.3.3): held over all attempts, unless what they ask about
/// was replaced or removed while the exchange rested.
extension CachingHook {
    /// What a validation asks with, by what is stored now.
    ///
    /// Whether anything changed is known without a look-up, so that a retry is none, and counts as none, in the common case.
    ///
    /// - Returns: the request anew, its conditions noted in the context; nil where nothing has changed.
    func renewed(_ need: Need, _ context: inout CallContext) async -> URLRequest? {
        var lookup = need.lookup
        let target = lookup.key.target
        let landings = cache.flights.landings
        guard
            !cache.writer.holds(lookup.generation, for: target)
                || cache.flights.hasLanded(lookup.key, since: lookup.landings)
        else { return nil }
        // What comes of the attempts so far is over, and the next one is sent after all that has happened by now.
        (lookup.landings, lookup.generation) = (landings, cache.writer.generation(of: target))
        cache.writer.begin(&lookup.generation, for: target)
        context[CacheLookup.self] = lookup
        let candidates = await candidates(for: lookup, context)
        let judgement = judge(lookup, candidates, context)
        var offered: [HeldResponse] = []
        if let index = judgement.decision.selectedCandidate, let held = await hold(candidates[index], context) {
            var indices = [index]
            if case .revalidate(let all) = judgement.decision { indices = all }
            offered = await offer(indices, held, candidates, context)
        }
        (context.validation, context[OfferedResponses.self], context[Completion.self]) = (nil, nil, nil)
        return Need(need.request, lookup, judgement, candidates, offered.first, offered: offered)
            .prepared(in: &context, cache)
    }
}

extension CallContext {
    /// The request of a retry, with conditions that fit what is stored by then.
    ///
    /// - Parameter request: as it was sent before; what hooks beneath the cache have set in it stays.
    mutating func renewingConditions(of request: URLRequest) async -> URLRequest {
        guard let before = validation, let renewed = await before.renewed(&self) else { return request }
        var request = request
        for name in before.replaced + (validation?.replaced ?? []) {
            request.setValue(renewed.value(forHTTPHeaderField: name.rawName), forHTTPHeaderField: name.rawName)
        }
        return request
    }
}
