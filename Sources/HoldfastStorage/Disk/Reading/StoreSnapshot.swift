// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// What a directory held at one instant, as a store that opened it then would have found it. Never changes.
final class StoreSnapshot: Sendable {
    let format: StoreFormat
    let index: ShardedIndex
    /// The numbers of the segments by slot.
    let segments: [UInt64]
    let marks: PurgeMarks
    let hashing: KeyHashing
    /// Entries of a lower version must be revalidated before they are used.
    let suspectBefore: UInt64
    /// Bytes of all files, in whole blocks.
    let bytesUsed: Int
    /// What did not hold.
    let damage: RecoveredStore.Damage
    /// The process at work on the directory, as far as that can be told.
    let holder: Int32?

    init(_ found: RecoveredStore, _ format: StoreFormat, _ index: ShardedIndex, holder: Int32?) {
        self.format = format
        self.index = index
        self.holder = holder
        segments = found.segments.map(\.number)
        marks = found.marks
        hashing = KeyHashing(seed: format.hashSeed)
        suspectBefore = found.suspectBefore
        damage = found.damage
        bytesUsed = found.segments.reduce(SpaceBudget.overhead + found.blobBlocks) { sum, segment in
            let (bytes, overflow) = sum.addingReportingOverflow(SpaceLedger.blocks(segment.fileSize))
            return overflow ? .max : bytes
        }
    }

    /// The rows of one shard from a place on, by ascending fragment and variant.
    func rows(shard number: Int, from fragment: UInt64, variant: UInt32, limit: Int) -> [IndexRow] {
        index.shards[number].state.withLock { $0.table.rows(from: fragment, variant: variant, limit: limit) }
    }

    /// The number of the segment in which a row's record lies; nil for a row of another snapshot.
    func segment(of row: IndexRow) -> UInt64? {
        let slot = Int(row.place.slot)
        return segments.indices.contains(slot) ? segments[slot] : nil
    }

    /// The entry that a record holds, if it is one of this key and no purge has taken it.
    func entry(_ source: RecordSource, _ key: StoreKey?, seal: (any StoreSeal)?) throws(StoreError) -> StoredEntry? {
        guard let detail = try source.detail(key: key, seal: seal) else { return nil }
        let isTaken = marks.takes(order: source.header.order, tags: detail.tags, key: detail.key, hashing: hashing)
        return isTaken ? nil : source.entry(detail, suspectBefore: suspectBefore)
    }
}
