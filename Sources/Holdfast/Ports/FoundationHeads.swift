// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import HoldfastSemantics
private import Synchronization

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// The last heads in Foundation's form, since making one costs more than a hundred hits.
///
/// A table with a fixed number of places, each with the last head that came to it. A head is found by its stored fields, which are
/// compared by identity, and by the Age that was added to them.
final class FoundationHeads: Sendable {
    static let shared = FoundationHeads()

    private struct Place: Sendable {
        let head: ResponseHead
        let url: String
        let made: HTTPURLResponse

        func isFor(_ head: ResponseHead, _ url: String) -> Bool {
            self.head.status == head.status && self.head.fields.isIdentical(to: head.fields) && self.url == url
        }
    }

    private final class Shard: Sendable {
        let places = Mutex([Place?](repeating: nil, count: FoundationHeads.placesPerShard))
    }

    private static let shardCount = 16
    private static let placesPerShard = 32

    private let shards = (0..<shardCount).map { _ in Shard() }

    /// The head for an absolute URL, which `make` makes if it is not known, or if the fields are not as they were stored.
    func head(of head: ResponseHead, url: String, make: () -> HTTPURLResponse?) -> HTTPURLResponse? {
        guard let hash = head.fields.placeHash else { return make() }
        let shard = shards[Int(hash % UInt(FoundationHeads.shardCount))]
        let index = Int(hash / UInt(FoundationHeads.shardCount) % UInt(FoundationHeads.placesPerShard))
        let known = shard.places.withLock { places in
            places[index].flatMap { $0.isFor(head, url) ? $0.made : nil }
        }
        if let known { return known }
        guard let made = make() else { return nil }
        shard.places.withLock { $0[index] = Place(head: head, url: url, made: made) }
        return made
    }
}
