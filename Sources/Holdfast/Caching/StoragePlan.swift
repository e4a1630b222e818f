// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import HoldfastSemantics
internal import HoldfastStorage

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// Whether a response is to be stored, and as what; why not otherwise.
struct StoragePlan: Sendable {
    struct Entry: Sendable {
        let key: StoreKey
        let variant: StoreKey
        let description: EntryDescription
    }

    let entry: Entry?
    let reason: String?

    init(
        _ response: Response,
        _ lookup: CacheLookup,
        _ exchange: SentExchange,
        _ context: CallContext,
        _ cache: HTTPCache
    ) {
        switch StoragePlan.judge(response, lookup, exchange, context, cache) {
        case .success(let entry): (self.entry, reason) = (entry, nil)
        case .failure(let refusal): (entry, reason) = (nil, refusal.reason)
        }
    }

    private struct Refusal: Error {
        let reason: String
    }

    private static func judge(
        _ response: Response,
        _ lookup: CacheLookup,
        _ exchange: SentExchange,
        _ context: CallContext,
        _ cache: HTTPCache
    ) -> Result<Entry, Refusal> {
        guard let sent = RequestHead(exchange.request, fields: exchange.presentedFields),
            sent.target == lookup.head.target
        else { return .failure(Refusal(reason: "another URL was sent than was looked up")) }
        let principal = CachePrincipal.digest(
            of: sent.fields,
            userinfo: sent.target.userinfo,
            explicit: context.options.principal,
            secret: cache.store.secret
        )
        guard principal == lookup.principal else {
            return .failure(Refusal(reason: "the credentials that were sent are not those that were looked up"))
        }
        let scope: Storability.Scope
        switch Storability.judge(
            request: sent,
            response: response.head,
            directive: lookup.directive,
            options: cache.options
        ) {
        case .store(let permitted): scope = permitted
        case .doNotStore(let reason): return .failure(Refusal(reason: reason.description))
        }
        // The conditions of a revalidation are the cache's own and select nothing.
        var selecting = sent.fields
        for name: FieldName in [.ifNoneMatch, .ifModifiedSince] { selecting[name] = lookup.head.fields[name] }
        guard
            let nominated = NominatedFields(vary: response.fields, request: selecting, secret: cache.store.secret)
        else { return .failure(Refusal(reason: "Vary: *")) }

        let now = context.clock.timestamp
        let stored = StoredResponse(
            target: lookup.head.target,
            method: lookup.head.method,
            nominated: nominated,
            head: FieldUpdate.storable(response.head, contentDecoded: response.contentDecoded),
            requestTime: response.requestTime ?? now,
            responseTime: response.responseTime ?? now,
            contentDecoded: response.contentDecoded
        )
        let description = EntryDescription(
            metadata: stored.encoded,
            uselessAfter: StoreInstant(stored.uselessAfter(cache.options)),
            tags: context.options.tags
        )
        return .success(
            Entry(
                key: lookup.storeKey(for: scope),
                variant: StoreKey(nominated.framed),
                description: description
            )
        )
    }
}
