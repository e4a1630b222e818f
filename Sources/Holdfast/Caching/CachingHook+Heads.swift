// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastSemantics
internal import HoldfastStorage

/// What the response to a HEAD does to the stored responses of its URI.
extension CachingHook {
    /// Updates or removes the stored responses that could have answered the request (RFC 9111 §4.3.5).
    func updateStored(byHead response: Response, _ lookup: CacheLookup, _ context: CallContext) async {
        guard case .network = response.source, context.exchange != nil,
            cache.writer.holds(lookup.generation, for: lookup.key.target)
        else { return }
        let received = ReceivedExchange(response, lookup: lookup, context: context, cache: cache)
        guard received.isForRequester else { return }
        let ownKeys = [lookup.storeKey, lookup.sharedStoreKey]
        // What is stored for another URI, and answers this one too, is described by that one's HEAD.
        for candidate in await candidates(for: lookup, context)
        where ownKeys.contains(candidate.entry.key) && matches(candidate, lookup) {
            let existing = received.existing(candidate.stored, in: candidate.entry)
            let bodyLength = candidate.entry.bodyLength
            let admission = received.admission(of: response, as: .head(existing, bodyLength: bodyLength))
            _ = await apply(admission, to: candidate.entry, by: received, in: context)
        }
    }
}
