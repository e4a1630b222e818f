// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// A page of a ``MemoryStore``'s list as it is gathered, shard after shard: in the order of the groups' places, and below that
/// of their variants' bytes.
///
/// A group keeps its place for as long as it is there, so that a record that stays is listed once. Costs a step for each
/// place passed.
struct MemoryPage: Sendable {
    private let limit: Int
    private var listed: [ListedEntry] = []
    private var next: StoreCursor?
    /// The place to go on from, and the variant up to which the group there was listed.
    private var place: Int
    private var last: [UInt8]?

    /// The shard to begin with.
    let firstShard: Int
    /// Whether no more is needed.
    var isFull: Bool { next != nil }
    /// What was gathered.
    var page: StorePage { StorePage(listed: listed, next: next) }

    /// The page that follows a place.
    init(after cursor: StoreCursor?, limit: Int) {
        self.limit = max(1, limit)
        let number = cursor?.parts?.number ?? 0
        firstShard = Int(truncatingIfNeeded: number >> 32)
        place = Int(truncatingIfNeeded: number & 0xFFFF_FFFF)
        last = cursor?.parts?.bytes
    }

    /// With the groups of the next shard.
    func adding(_ groups: [GroupTable.Group], ofShard shard: Int) -> MemoryPage {
        var page = self
        page.add(groups, ofShard: shard)
        return page
    }

    private mutating func add(_ groups: [GroupTable.Group], ofShard shard: Int) {
        while place < groups.count {
            let entries = groups[place].entries.sorted {
                $0.variant.bytes.lexicographicallyPrecedes($1.variant.bytes)
            }
            for entry in entries {
                let variant = entry.variant.bytes
                if let last, !last.lexicographicallyPrecedes(variant) { continue }
                if listed.count == limit, let end = listed.last {
                    // `end` stands here or at an earlier place; to go on from here after nothing would list this variant.
                    next = StoreCursor(number: lastNumber, bytes: end.entry.variant.bytes)
                    return
                }
                listed.append(ListedEntry(entry: entry, hits: nil, bytes: MemoryLimits.cost(entry)))
                lastNumber = UInt64(truncatingIfNeeded: shard) << 32 | UInt64(truncatingIfNeeded: place)
            }
            last = nil
            place += 1
        }
        (place, last) = (0, nil)
    }

    /// The shard and the place of the entry listed last.
    private var lastNumber: UInt64 = 0
}
