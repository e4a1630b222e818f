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
        for candidate in await candidates(for: lookup, context)
        where candidate.stored.nominated.matches(lookup.head.fields, secret: cache.store.secret) {
            let existing = received.existing(candidate.stored, in: candidate.entry)
            let bodyLength = candidate.entry.bodyLength
            switch received.admission(of: response, as: .head(existing, bodyLength: bodyLength)).action {
            case .freshen(let stored): _ = await freshen(candidate.entry, as: stored, by: received, in: context)
            case .remove: await remove(candidate.entry, context)
            case .store, .pass: break
            }
        }
    }
}
