// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastSemantics
internal import HoldfastStorage
private import Synchronization

/// Remembers what some entries decode to, since reading an entry's metadata would be the dearest part of a hit.
///
/// A table of a fixed number of places, each holding the entry that asked for it last: an entry is found by its version, which
/// is unique within a store, so a freshened entry is decoded anew and nothing has to be told that an entry is gone.
final class DecodedResponses: Sendable {
    private struct Place: Sendable {
        let version: StoredEntry.Version
        let response: StoredResponse
    }

    /// A part of the table with a lock of its own, so that threads seldom meet.
    private final class Shard: Sendable {
        let places: Mutex<[Place?]>

        init(count: Int) { places = Mutex([Place?](repeating: nil, count: count)) }
    }

    private static let shardCount = 16
    /// One place for so many bytes of the store: a decoded response takes about 1.5 KiB, most of which a ready answer shares.
    private static let bytesPerPlace = 16 << 10
    /// Longer metadata is decoded each time, so that the whole table stays within a small part of the store.
    private static let longestMetadata = 4 << 10

    private let shards: [Shard]
    private let placesPerShard: Int
    private let targetedFields: [FieldName]

    /// - Parameters:
    ///   - capacity: what the store holds at most, in bytes; nil, where it cannot say, counts as little.
    ///   - targetedFields: the cache's target list (RFC 9213 §2.2).
    init(capacity: Int? = nil, targetedFields: [FieldName] = []) {
        let count = min(max((capacity ?? 0) / DecodedResponses.bytesPerPlace, 512), 8192)
        placesPerShard = count / DecodedResponses.shardCount
        shards = (0..<DecodedResponses.shardCount).map { [placesPerShard] _ in Shard(count: placesPerShard) }
        self.targetedFields = targetedFields
    }

    /// What the entry is to the cache: what its metadata describes, to be confirmed where its store cannot vouch for it; nil
    /// where the metadata is damaged.
    func response(of entry: StoredEntry) -> StoredResponse? {
        let response = described(by: entry)
        // What a person demands stays in the metadata, and is more than the store's doubt.
        guard entry.needsValidation, let response, !response.needsConfirmation else { return response }
        return response.needingConfirmation(.storeLostPower)
    }

    private func described(by entry: StoredEntry) -> StoredResponse? {
        let shard = shards[Int(entry.version.number % UInt64(DecodedResponses.shardCount))]
        let index = Int(entry.version.number / UInt64(DecodedResponses.shardCount) % UInt64(placesPerShard))
        let known = shard.places.withLock { places in
            places[index].flatMap { $0.version == entry.version ? $0.response : nil }
        }
        if let known { return known }
        let metadata = entry.description.metadata
        guard let response = StoredResponse(decoding: metadata, targetedFields: targetedFields) else { return nil }
        // All entries that are being written have one version.
        guard metadata.count <= DecodedResponses.longestMetadata, entry.version != .beingWritten else {
            return response
        }
        shard.places.withLock { $0[index] = Place(version: entry.version, response: response) }
        return response
    }
}
