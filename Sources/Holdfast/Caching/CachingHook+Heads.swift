// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastSemantics
internal import HoldfastStorage

/// What the response to a HEAD does to the stored responses of its URI.
extension CachingHook {
    /// Updates or removes the stored responses that could have answered the request (RFC 9111 §4.3.5).
    func updateStored(byHead response: Response, _ lookup: CacheLookup, _ context: CallContext) async {
        // What another principal was told of the URI is no news about this one's.
        guard case .network = response.source, let exchange = context.exchange,
            let presented = response.presentation.fields,
            let sent = context.head(of: exchange.request, fields: cache.view(of: presented)),
            sent.target == lookup.head.target,
            StoragePlan.principal(of: response, lookup, context, cache) == lookup.principal
        else { return }
        let now = context.clock.timestamp
        for candidate in await candidates(for: lookup, context)
        where candidate.isOwn
            && candidate.stored.nominated.matches(lookup.head.fields, secret: cache.store.secret)
        {
            let update = HeadUpdate.judge(
                candidate.stored,
                bodyLength: candidate.entry.bodyLength,
                request: sent,
                response: response.head,
                requestTime: response.requestTime ?? now,
                responseTime: response.responseTime ?? now,
                directive: lookup.directive,
                options: cache.options
            )
            switch update {
            case .keep: break
            case .invalidate: await remove(candidate.entry, context)
            case .update(let stored): _ = await replaceDescription(of: candidate.entry, as: stored, context)
            }
        }
    }
}
