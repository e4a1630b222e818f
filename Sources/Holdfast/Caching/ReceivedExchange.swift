// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import HoldfastSemantics
internal import HoldfastStorage

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// A response that may be stored, and where.
struct AdmittedEntry: Sendable {
    let key: StoreKey
    let variant: StoreKey
    /// The response that ``description`` describes.
    let stored: StoredResponse
    let description: EntryDescription
    /// The body's length, if the transport or Content-Length gives it.
    let bodyLength: Int?
    /// Whether other calls that wait for the same may get the response.
    let mayBeShared: Bool
    /// Its place in the order of what is written for its target.
    let claim: ExchangeOrder.Claim
}

/// A response on its way up, with its exchange, as ``Admission`` needs it.
struct ReceivedExchange: Sendable {
    let lookup: CacheLookup
    let exchange: Admission.Exchange
    private let cache: HTTPCache

    /// - Parameter context: of the exchange whose request was sent.
    init(_ response: Response, lookup: CacheLookup, context: CallContext, cache: HTTPCache) {
        self.lookup = lookup
        self.cache = cache
        let now = context.clock.timestamp
        var sent: RequestHead?
        var sentPartition: String?
        if let fields = response.presentation.fields(probably: lookup.presented),
            let request = context.exchange?.request
        {
            let presented = cache.view(of: fields, to: lookup.head.target)
            sent = context.head(of: request, fields: presented)
            sentPartition = lookup.partition(ofSent: presented, in: context, of: cache)
        }
        var exchange = Admission.Exchange(
            lookedUp: lookup.head,
            sent: sent,
            partition: lookup.principal,
            sentPartition: sentPartition,
            requestTime: response.requestTime ?? now,
            responseTime: response.responseTime ?? now,
            directive: lookup.directive,
            // Fields of a credential that had to be requested first are known by now.
            credentialFields: lookup.credentialFields + context.options.credentialFields
        )
        if let order = context.exchange?.order { exchange.requestOrder = order }
        exchange.hasUnkeyedContent = lookup.hasUnkeyedContent
        exchange.hasContentKey = lookup.content != nil
        exchange.hasUsableStored = context.transaction?.holdsUsable ?? false
        exchange.contentDecoded = response.contentDecoded
        if let content = lookup.content, let sent,
            !content.isSame(as: LookupKeys.content(of: sent, context: context, options: cache.options))
        {
            exchange.hasUnkeyedContent = true
        }
        self.exchange = exchange
    }

    /// Whether the sent request had the principal that was looked up, so that the response is for it.
    var isForRequester: Bool { exchange.refusal == nil }

    func admission(of response: Response, as kind: Admission.Kind) -> Admission {
        Admission(of: response.head, as: kind, in: exchange, options: cache.options, secret: cache.store.secret)
    }

    /// A stored response, as admission needs it.
    func existing(_ stored: StoredResponse, in entry: StoredEntry) -> Admission.Existing {
        let parts = CacheKey.Parts(framed: entry.key.bytes)
        return Admission.Existing(stored, partition: parts?.partition ?? lookup.principal)
    }

    /// The response to be written, with its place in the order of everything written for the target.
    func claim(on key: StoreKey, nominated: NominatedFields) -> ExchangeOrder.Claim {
        ExchangeOrder.Claim(
            order: exchange.requestOrder,
            key: key,
            nominated: nominated,
            // Entries that are only borrowed do not affect which of the requester's own is the newest.
            readable: [lookup.storeKey, key] + (lookup.borrows ? [] : [lookup.sharedStoreKey].compactMap(\.self)),
            fields: exchange.selecting
        )
    }
}

extension StoredResponse {
    /// How a store keeps the response.
    func description(tags: Set<String>, _ options: CacheOptions) -> EntryDescription {
        var description = EntryDescription(
            metadata: encoded,
            uselessAfter: StoreInstant(uselessAfter(options)),
            tags: tags
        )
        description.requestedAt = StoreInstant(requestTime)
        return description
    }

    /// The response with only the first bytes of its content; nil if the rest could not be requested, so that nothing of it is
    /// worth keeping (RFC 9111 §3.3).
    ///
    /// - Parameter layout: the intervals of the content that the bytes belong to, in order.
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

/// Why a response is not stored, thrown where that was found out.
struct Unstored: Error {
    let reason: CacheReason
}
