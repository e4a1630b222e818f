// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import HoldfastSemantics
internal import HoldfastStorage

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// Where an answer from the store comes from, for what may become of it later: held once, whoever asks.
final class StoredOrigin: RemovableOrigin {
    private let hook: CachingHook
    private let entry: StoredEntry
    private let stored: StoredResponse
    private let lookup: CacheLookup
    private let request: URLRequest?
    private let context: CallContext
    private let way: DeliveryWay?

    init(
        hook: CachingHook,
        held: HeldResponse,
        lookup: CacheLookup,
        request: URLRequest?,
        context: CallContext,
        way: DeliveryWay?
    ) {
        self.hook = hook
        entry = held.entry
        stored = held.stored
        self.lookup = lookup
        self.request = request
        self.context = context
        self.way = way
    }

    func delivered(_ bytes: Int) {
        if let way { lookup.tally.count(bytes, way) }
    }

    func failed(_ error: StoreError) async {
        hook.storeFailed(error, context)
        await remove()
    }

    func remove() async {
        await hook.remove(entry, context)
        await hook.removeOlder(than: stored.requestOrder, under: entry.key, for: lookup, in: context)
    }

    func rest(_ missing: Range<Int64>) async -> (any ByteSource)? {
        guard let request else { return nil }
        return await hook.rest(of: stored, missing, request, lookup, context)
    }
}
