// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Decides during recovery whether the body of a winning entry is there, and notes which blobs are named.
///
/// An entry that has lost its blob is void only now that it has won: the older entry it superseded stays gone.
struct BlobJudge {
    private let sizes: [UInt64: Int]
    /// By slot and place, packed: slot above 32 bits of place.
    private var rows: [UInt64: BlobRow] = [:]
    /// The blobs that entries need.
    private(set) var named: Set<UInt64> = []

    /// A judge over the blob files by number with their sizes, and the blob rows of the segments by slot.
    init(sizes: [UInt64: Int], segments: [[BlobRow]]) {
        self.sizes = sizes
        for (slot, blobs) in segments.enumerated() {
            for blob in blobs { rows[Self.key(slot, blob.place)] = blob }
        }
    }

    /// The row for the index; nil when the entry is void, which is then counted, and owed a tombstone if it shadows.
    mutating func judge(_ winner: RecoveryFold.Winner, _ store: inout RecoveredStore) -> IndexRow? {
        let row = winner.row
        guard row.hasBlob else { return row }
        let slot = Int(row.place.slot)
        if let blob = rows[Self.key(slot, row.place.unit)],
            let size = sizes[blob.number], UInt64(exactly: size) == blob.storedBytes,
            named.insert(blob.number).inserted
        {
            store.segments[slot].blobBytes = store.segments[slot].blobBytes.addingSaturated(size)
            return row
        }
        store.damage.entries += 1
        if row.shadows {
            let owed = RecoveredStore.Owed(primary: winner.primary, variant: row.variant, order: row.order)
            store.owed.append(owed)
        }
        return nil
    }

    private static func key(_ slot: Int, _ place: UInt32) -> UInt64 {
        UInt64(truncatingIfNeeded: slot) << 32 | UInt64(place)
    }
}
