// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import HoldfastSemantics
internal import HoldfastStorage

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// Whether a response is to be stored, and as what; why not otherwise.
enum StoragePlan {
    struct Entry: Sendable {
        let key: StoreKey
        let variant: StoreKey
        /// The response that ``description`` describes.
        let stored: StoredResponse
        let description: EntryDescription
        /// The body's length, where the transport or Content-Length tells it.
        let bodyLength: Int?
    }

    /// The entry to store, or why there is none.
    ///
    /// - Parameter part: what a 206 is to be stored as; nil for any other response.
    static func judge(
        _ response: Response,
        part: ReceivedPart? = nil,
        _ lookup: CacheLookup,
        _ exchange: SentExchange,
        _ context: CallContext,
        _ cache: HTTPCache
    ) throws(Unstored) -> Entry {
        guard let presented = response.presentation.fields else {
            throw Unstored(reason: .hiddenRequest)
        }
        guard let sent = context.head(of: exchange.request, fields: cache.view(of: presented)),
            sent.target == lookup.head.target
        else { throw Unstored(reason: .otherTarget) }
        guard principal(of: response, lookup, context, cache) == lookup.principal else {
            throw Unstored(reason: .otherPrincipal)
        }
        if lookup.bypassReason == .content { throw Unstored(reason: .content) }
        if let content = lookup.content, !content.isSame(as: LookupKeys.content(of: sent, context, cache.options)) {
            throw Unstored(reason: .content)
        }
        let length = response.contentDecoded ? nil : response.head.contentLength
        if let length, let bytes = response.body.bytesInMemory, bytes.count != length {
            throw Unstored(reason: .incomplete)
        }
        let scope: Storability.Scope
        switch Storability.judge(
            request: sent,
            response: part?.storedHead ?? response.head,
            directive: lookup.directive,
            options: cache.options,
            isPersonal: !lookup.principal.isEmpty,
            hasContentKey: lookup.content != nil
        ) {
        case .store(let permitted): scope = permitted
        case .doNotStore(let reason): throw Unstored(reason: reason)
        }
        if isNegative(response), context[HoldsUsable.self] != nil, cache.options.negativeLifetime != nil {
            throw Unstored(reason: .negativeOverStored)
        }
        // The conditions of a revalidation or completion are the cache's own and select nothing; content without a coding,
        // which a cache asks for where it deals with parts, is what any caller accepts.
        var selecting = sent.fields
        var own: [FieldName] = [.ifNoneMatch, .ifModifiedSince, .range, .ifRange]
        if sent.fields[.acceptEncoding] == "identity" { own.append(.acceptEncoding) }
        for name in own { selecting[name] = lookup.head.fields[name] }
        guard
            let nominated = NominatedFields(
                vary: response.fields,
                request: selecting,
                secret: cache.store.secret,
                credentialFields: context.options.credentialFields
            )
        else { throw Unstored(reason: .varyStar) }

        let now = context.clock.timestamp
        var stored = StoredResponse(
            target: lookup.head.target,
            method: lookup.key.methodGroup,
            nominated: nominated,
            head: FieldUpdate.storable(
                part?.storedHead ?? response.head,
                contentDecoded: response.contentDecoded,
                mode: cache.options.mode,
                targetedFields: cache.options.targets,
                ignoredCookies: cache.options.ignored
            ),
            requestTime: response.requestTime ?? now,
            responseTime: response.responseTime ?? now,
            contentDecoded: response.contentDecoded,
            givenLifetime: lookup.directive.lifetime?.wholeSeconds,
            targetedFields: cache.options.targets
        )
        stored.ranges = part?.ranges
        let description = stored.description(tags: cache.tags(context.options.tags, for: stored), cache.options)
        return Entry(
            key: lookup.storeKey(for: scope),
            variant: StoreKey(nominated.framed),
            stored: stored,
            description: description,
            bodyLength: length ?? response.body.length
        )
    }

    /// Whether only the cache's own choice makes a failure of the server worth storing.
    private static func isNegative(_ response: Response) -> Bool {
        response.status.rawValue >= 500 && response.head.allowsNegativeCaching
    }

    /// Whose response it is, by what was sent for it; nil where that cannot be seen.
    static func principal(
        of response: Response,
        _ lookup: CacheLookup,
        _ context: CallContext,
        _ cache: HTTPCache
    ) -> String? {
        guard let presented = response.presentation.fields else { return nil }
        return cache.principal(of: presented, to: lookup.head.target, context)
    }
}

/// Notes that what is stored for a request is no error, so that a failure does not take its place by the cache's own choice.
struct HoldsUsable: Sendable {}

extension StoredResponse {
    /// How a store keeps the response.
    func description(tags: Set<String>, _ options: CacheOptions) -> EntryDescription {
        EntryDescription(metadata: encoded, uselessAfter: StoreInstant(uselessAfter(options)), tags: tags)
    }

    /// The response with so many bytes of its content from the beginning; nil where the rest could not be asked for, so that
    /// nothing of it is worth keeping (RFC 9111 §3.3).
    ///
    /// - Parameter layout: the intervals of the content that the bytes are of, in their order.
    func cutOff(after count: Int, of layout: [Range<Int64>]) -> StoredResponse? {
        guard head.status == .ok, method == .get, StrongValidator(self) != nil else { return nil }
        var left = Int64(count)
        var kept: [Range<Int64>] = []
        for interval in layout where left > 0 {
            let length = min(left, interval.upperBound - interval.lowerBound)
            kept.append(interval.lowerBound..<interval.lowerBound + length)
            left -= length
        }
        let known = ranges.map(\.completeLength) ?? head.contentLength.map { Int64($0) }
        guard !kept.isEmpty, let ranges = StoredRanges(intervals: kept, completeLength: known), !ranges.isComplete
        else {
            return nil
        }
        var cut = self
        cut.ranges = ranges
        return cut
    }
}

/// Why a response is not stored, on its way from where that was found out.
struct Unstored: Error {
    let reason: CacheReason
}
