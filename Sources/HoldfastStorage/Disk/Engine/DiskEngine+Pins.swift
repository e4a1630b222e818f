// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// Pins and the bound on the variants of a key: what is settled once an entry is in the index.
extension DiskEngine {
    /// The most variants of one key; one more takes the place of the oldest that is not pinned.
    static let maximumVariants = 16

    /// What a pinned entry weighs against what pins may have.
    func pinWeight(_ header: RecordHeader) -> Int {
        header.units * 16 + TableRow.size + BlobRow.size
            + (header.hasBlob ? SpaceLedger.blocks(header.storedBlobBytes) : 0)
    }

    /// Books the pin of an entry that has come into the index; where there is no room for it the entry is not pinned.
    func settlePin(_ record: ReservedRecord, _ replaced: GoneRow?) {
        let identity = EntryIdentity(primary: record.header.primary, variant: record.header.variant)
        if record.header.isPinned {
            if !pins.pin(identity, weight: pinWeight(record.header)) { unpin(identity) }
        } else if replaced?.row.isPinned == true {
            pins.release(identity)
        }
    }

    func unpin(_ identity: EntryIdentity) {
        pins.release(identity)
        index.shard(of: identity.primary).state.withLock { shard in
            _ = shard.table.change(ShardedIndex.fragment(of: identity.primary), variant: identity.variant) {
                $0.isPinned = false
            }
        }
    }
}
