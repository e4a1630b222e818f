// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

extension EntryIndex {
    /// The records that follow a place, in the order of their slots and below that of their variants' bytes.
    ///
    /// A group keeps its slot for as long as it is there, so that a record that stays is listed once. Costs a step for each
    /// slot passed.
    func page(after cursor: StoreCursor?, limit: Int, bytes: (Record) -> Int) -> StorePage {
        let limit = max(1, limit)
        let start = cursor?.parts
        var slot = start.flatMap { Int(exactly: $0.number) } ?? 0
        // The variant up to which the group in the first slot was listed.
        var last = start?.bytes
        var listed: [ListedEntry] = []
        while slot < slotCount {
            let records = records(inSlot: slot).sorted {
                $0.entry.variant.bytes.lexicographicallyPrecedes($1.entry.variant.bytes)
            }
            for record in records {
                let variant = record.entry.variant.bytes
                if let last, !last.lexicographicallyPrecedes(variant) { continue }
                if listed.count == limit, let end = listed.last {
                    return StorePage(listed: listed, next: place(of: end.entry))
                }
                listed.append(ListedEntry(entry: record.entry, hits: nil, bytes: bytes(record)))
            }
            last = nil
            slot += 1
        }
        return StorePage(listed: listed, next: nil)
    }

    private func place(of entry: StoredEntry) -> StoreCursor? {
        self.slot(of: entry.key).map { StoreCursor(number: UInt64($0), bytes: entry.variant.bytes) }
    }
}
