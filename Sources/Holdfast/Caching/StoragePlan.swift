// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import HoldfastSemantics
internal import HoldfastStorage

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// Whether a response is to be stored, and as what; why not otherwise.
enum StoragePlan: Sendable {
    case store(Entry)
    case leave(CacheReason)

    struct Entry: Sendable {
        let key: StoreKey
        let variant: StoreKey
        let stored: StoredResponse
        let description: EntryDescription
        /// The body's length, where the transport or Content-Length tells it.
        let bodyLength: Int?
    }

    /// The entry to store, or why there is none.
    func entry() throws(Unstored) -> Entry {
        switch self {
        case .store(let entry): return entry
        case .leave(let reason): throw Unstored(reason: reason)
        }
    }

    static func judge(
        _ response: Response,
        _ lookup: CacheLookup,
        _ exchange: SentExchange,
        _ context: CallContext,
        _ cache: HTTPCache
    ) -> StoragePlan {
        guard case .fields(let presented) = response.presentation else {
            return .leave(.hiddenRequest)
        }
        guard let sent = RequestHead(exchange.request, fields: presented), sent.target == lookup.head.target
        else { return .leave(.otherTarget) }
        guard principal(of: response, lookup, context, cache) == lookup.principal else {
            return .leave(.otherPrincipal)
        }
        if lookup.bypassReason == .content { return .leave(.content) }
        let length = response.contentDecoded ? nil : response.head.contentLength
        if let length, let bytes = response.body.bytesInMemory, bytes.count != length {
            return .leave(.incomplete)
        }
        let scope: Storability.Scope
        switch Storability.judge(
            request: sent,
            response: response.head,
            directive: lookup.directive,
            options: cache.options,
            isPersonal: !lookup.principal.isEmpty
        ) {
        case .store(let permitted): scope = permitted
        case .doNotStore(let reason): return .leave(reason)
        }
        // The conditions of a revalidation are the cache's own and select nothing.
        var selecting = sent.fields
        for name: FieldName in [.ifNoneMatch, .ifModifiedSince] { selecting[name] = lookup.head.fields[name] }
        guard
            let nominated = NominatedFields(vary: response.fields, request: selecting, secret: cache.store.secret)
        else { return .leave(.varyStar) }

        let now = context.clock.timestamp
        let stored = StoredResponse(
            target: lookup.head.target,
            method: lookup.key.methodGroup,
            nominated: nominated,
            head: FieldUpdate.storable(
                response.head,
                contentDecoded: response.contentDecoded,
                mode: cache.options.mode
            ),
            requestTime: response.requestTime ?? now,
            responseTime: response.responseTime ?? now,
            contentDecoded: response.contentDecoded
        )
        let description = EntryDescription(
            metadata: stored.encoded,
            uselessAfter: StoreInstant(stored.uselessAfter(cache.options)),
            tags: context.options.tags
        )
        return .store(
            Entry(
                key: lookup.storeKey(for: scope),
                variant: StoreKey(nominated.framed),
                stored: stored,
                description: description,
                bodyLength: length ?? response.body.length
            )
        )
    }

    /// Whose response it is, by what was sent for it; nil where that cannot be seen.
    static func principal(
        of response: Response,
        _ lookup: CacheLookup,
        _ context: CallContext,
        _ cache: HTTPCache
    ) -> String? {
        guard case .fields(let presented) = response.presentation else { return nil }
        return cache.principal(of: presented, to: lookup.head.target, context)
    }
}

/// Why a response is not stored, on its way from where that was found out.
struct Unstored: Error {
    let reason: CacheReason
}
