// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import HoldfastSemantics
internal import HoldfastStorage

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// An entry of a store together with the response it describes.
struct CacheCandidate: Sendable {
    let entry: StoredEntry
    let stored: StoredResponse
    /// Whether what the origin says to the request that found it may change it.
    var isOwn = true
}

/// A stored response with its body at hand.
struct HeldResponse: Sendable {
    /// A body up to this length is read whole and checked before it is relied on, so that damage is a miss and no more.
    private static let readWhole = 256 << 10

    var entry: StoredEntry
    var stored: StoredResponse
    let isOwn: Bool
    private let bytes: ByteChunk?
    private let body: any StoredBody

    init(_ candidate: CacheCandidate, in store: any CacheStore) async throws(StoreError) {
        entry = candidate.entry
        stored = candidate.stored
        isOwn = candidate.isOwn
        body = try await store.body(of: candidate.entry)
        if let inMemory = body.bytesInMemory {
            bytes = inMemory
        } else if candidate.entry.bodyLength == 0 {
            bytes = ByteChunk()
        } else if candidate.entry.bodyLength <= HeldResponse.readWhole {
            bytes = try await HeldResponse.whole(body, length: candidate.entry.bodyLength)
        } else {
            // The rest is read as it is asked for; the beginning shows whether the body is there at all.
            _ = try await body.read(from: 0, upTo: 64 << 10)
            bytes = nil
        }
    }

    private static func whole(_ body: any StoredBody, length: Int) async throws(StoreError) -> ByteChunk {
        let first = try await body.read(from: 0, upTo: length)
        if first.count == length { return first }
        var all = first.array
        while all.count < length {
            let chunk = try await body.read(from: all.count, upTo: length - all.count)
            guard !chunk.isEmpty else {
                throw StoreError(
                    .corrupt,
                    "A stored body ends \(length - all.count) bytes early; it is taken for a miss."
                )
            }
            chunk.append(to: &all)
        }
        return ByteChunk(all)
    }

    /// The response as it answers a request now: Age set, no body for HEAD.
    func response(
        to lookup: CacheLookup,
        source: ResponseSource,
        now: Timestamp,
        delivered: @escaping @Sendable (Int) -> Void,
        failed: @escaping @Sendable (StoreError) async -> Void
    ) -> Response {
        let head = stored.responseHead(now: now)
        var response = Response(
            status: head.status,
            fields: head.fields,
            source: source,
            contentDecoded: stored.contentDecoded
        )
        response.requestTime = stored.requestTime
        response.responseTime = stored.responseTime
        response.presentation = .fields(lookup.head.fields)
        guard lookup.head.method != .head else { return response }
        if let bytes {
            delivered(bytes.count)
            response.body = ResponseBody(bytes)
        } else {
            response.body = ResponseBody(
                StoredBodySource(body, delivered: delivered, failed: failed),
                length: entry.bodyLength
            )
        }
        return response
    }
}
