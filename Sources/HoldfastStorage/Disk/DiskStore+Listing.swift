// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

extension DiskStore {
    public func list(after cursor: StoreCursor?, limit: Int, now: StoreInstant) async throws(StoreError) -> StorePage {
        try engine.checkOpen()
        let engine = engine
        let limit = max(1, limit)
        var place = ListPlace(cursor)
        var listed: [ListedEntry] = []
        while place.shard < ShardedIndex.count {
            let (from, wanted) = (place, limit - listed.count)
            let page = try await engine.threads.run(.reads) { () throws(StoreError) -> [(IndexRow, ListedEntry?)] in
                var page: [(IndexRow, ListedEntry?)] = []
                for row in engine.rows(
                    shard: from.shard,
                    from: from.fragment,
                    variant: from.variant,
                    limit: min(wanted, Self.page)
                ) {
                    page.append((row, try engine.listed(row, shard: from.shard)))
                }
                return page
            }
            listed += page.compactMap(\.1)
            if let next = page.last?.0.next {
                (place.fragment, place.variant) = next
            } else {
                place = ListPlace(shard: place.shard + 1)
            }
            if listed.count >= limit { return StorePage(listed: listed, next: place.cursor) }
        }
        return StorePage(listed: listed, next: nil)
    }
}

extension DiskEngine {
    /// What a list shows of a row; nil when its entry has gone.
    fileprivate func listed(_ row: IndexRow, shard: Int) throws(StoreError) -> ListedEntry? {
        guard let entry = try entry(of: row, shard: shard), let source = entry.source else { return nil }
        let blob = source.header.hasBlob ? SpaceLedger.blocks(source.header.storedBlobBytes) : 0
        // Of what the mark tells, the put was one.
        let weight = index.shards[shard].state.withLock { $0.frequencies.weight(row.mark) }
        let hits = max(0, DensityWeight.count(of: weight) - 1)
        return ListedEntry(entry: entry, hits: hits, bytes: Int(row.place.units) * 16 + blob)
    }
}

/// Where a list of a disk store goes on: shard, fragment, variant.
private struct ListPlace: Sendable {
    var shard: Int
    var fragment: UInt64 = 0
    var variant: UInt32 = 0

    init(shard: Int) {
        self.shard = shard
    }

    init(_ cursor: StoreCursor?) {
        self.init(shard: 0)
        guard let (number, bytes) = cursor?.parts, number < UInt64(ShardedIndex.count), bytes.count == 12 else {
            return
        }
        var decoder = ByteDecoder(bytes[...])
        guard let fragment = decoder.number(UInt64.self), let variant = decoder.number(UInt32.self) else { return }
        (shard, self.fragment, self.variant) = (Int(number), fragment, variant)
    }

    var cursor: StoreCursor {
        var encoder = ByteEncoder()
        encoder.put(fragment)
        encoder.put(variant)
        return StoreCursor(number: UInt64(clamping: shard), bytes: encoder.bytes)
    }
}
