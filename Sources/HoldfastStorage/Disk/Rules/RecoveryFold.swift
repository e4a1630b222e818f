// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Finds, among all records of all segments, the one that counts of each identity.
///
/// Of one identity the entry of the highest order wins, unless a tombstone of its variant or of its primary key has that
/// order or a higher one. Equal orders are copies of one record; the one in the highest slot is taken. A winner shadows
/// when any other record of its identity was seen: evicting it must leave a tombstone, or that one would come back.
///
/// An identity is what the index can tell apart: shard, fragment and variant. Keys that agree in these displace each other
/// in the index, so they must do it here as well, or a displaced entry could outlive its removal.
///
/// The rows of all segments are in memory while it runs, 32 bytes each; beside them it holds the rows of one shard. Cost:
/// some 50 ns a row.
struct RecoveryFold {
    /// The rows of one segment, sorted as ``SegmentTable`` sorts them.
    struct Run {
        /// The segment's place in the list of segments, which is in ascending order of their numbers.
        let slot: UInt16
        let rows: [TableRow]
    }

    /// An entry that counts.
    struct Winner: Sendable, Hashable {
        /// The hash of its primary key.
        let primary: UInt64
        /// What the index holds of it.
        let row: IndexRow
    }

    private let runs: [Run]

    /// A fold of these runs, which may come in any order.
    init(_ runs: [Run]) {
        self.runs = runs
    }

    /// Calls `body` for each shard in turn with its winners, ordered by fragment and variant; ends with the first error.
    func forEachShard<Failure: Error>(
        _ body: (_ shard: Int, _ winners: [Winner]) throws(Failure) -> Void
    ) throws(Failure) {
        var positions = [Int](repeating: 0, count: runs.count)
        var items: [Item] = []
        var sorter = Sorter()
        var winners: [Winner] = []
        for shard in 0..<ShardedIndex.count {
            items.removeAll(keepingCapacity: true)
            winners.removeAll(keepingCapacity: true)
            for index in runs.indices {
                positions[index] = take(shard, of: runs[index], from: positions[index], &items)
            }
            sorter.sort(items)
            Self.judge(items, sorter.keys, &winners)
            try body(shard, winners)
        }
    }

    private func take(_ shard: Int, of run: Run, from start: Int, _ items: inout [Item]) -> Int {
        var position = start
        while position < run.rows.count {
            let row = run.rows[position]
            guard ShardedIndex.number(of: row.primary) == shard else { break }
            position += 1
            // Marks kill by tag or prefix and have no say here.
            if row.kind == .tagMark || row.kind == .prefixMark { continue }
            items.append(Item(row: row, slot: run.slot))
        }
        return position
    }

    private static func judge(_ items: [Item], _ keys: [UInt64], _ winners: inout [Winner]) {
        var start = 0
        while start < keys.count {
            let fragment = items[Sorter.index(keys[start])].fragment
            var end = start
            var killed: UInt64 = 0
            while end < keys.count {
                let item = items[Sorter.index(keys[end])]
                guard item.fragment == fragment else { break }
                if item.row.kind == .primaryTombstone { killed = max(killed, item.row.order) }
                end += 1
            }
            judge(items, keys, start..<end, killed: killed, &winners)
            start = end
        }
    }

    /// Judges the variants of one primary key, whose tombstones reach up to the order `killed`.
    private static func judge(
        _ items: [Item],
        _ keys: [UInt64],
        _ range: Range<Int>,
        killed: UInt64,
        _ winners: inout [Winner]
    ) {
        var start = range.lowerBound
        while start < range.upperBound {
            let variant = items[Sorter.index(keys[start])].row.variant
            var killed = killed
            var entries = 0
            var last = 0
            while start < range.upperBound {
                let index = Sorter.index(keys[start])
                let row = items[index].row
                guard row.variant == variant else { break }
                if row.kind == .entry {
                    entries += 1
                    last = index
                } else if row.kind == .variantTombstone {
                    killed = max(killed, row.order)
                }
                start += 1
            }
            guard entries > 0, items[last].row.order > killed else { continue }
            winners.append(winner(items[last], shadows: entries > 1))
        }
    }

    private static func winner(_ item: Item, shadows: Bool) -> Winner {
        let row = item.row
        return Winner(
            primary: row.primary,
            row: IndexRow(
                fragment: ShardedIndex.fragment(of: row.primary),
                variant: row.variant,
                place: RecordPlace(slot: item.slot, unit: row.place, units: row.units),
                order: row.order,
                isPinned: row.isPinned,
                hasBlob: row.hasBlob,
                shadows: shadows
            )
        )
    }
}

extension RecoveryFold {
    /// A record and where it lies.
    private struct Item {
        let row: TableRow
        let slot: UInt16

        var fragment: UInt64 { ShardedIndex.fragment(of: row.primary) }
        /// The upper bits of the fragment.
        var bits: UInt32 { UInt32(truncatingIfNeeded: fragment >> UInt64(IndexRow.fragmentBits - 32)) }

        /// By fragment, variant, order and slot; the place makes it total.
        func precedes(_ other: Item) -> Bool {
            if fragment != other.fragment { return fragment < other.fragment }
            if row.variant != other.row.variant { return row.variant < other.row.variant }
            if row.order != other.row.order { return row.order < other.row.order }
            return slot != other.slot ? slot < other.slot : row.place < other.row.place
        }
    }

    /// Orders the items of a shard without moving them: a key is 32 bits of the fragment above the item's
    /// index.
    ///
    /// It deals the keys to as many buckets as there are items: fragments are hashes, so most buckets hold one or two.
    private struct Sorter {
        private(set) var keys: [UInt64] = []
        private var ends: [UInt32] = []

        static func index(_ key: UInt64) -> Int { Int(truncatingIfNeeded: key & 0xFFFF_FFFF) }

        mutating func sort(_ items: [Item]) {
            let bits = min(max(1, Int.bitWidth - items.count.leadingZeroBitCount), 24)
            let shift = UInt32(32 - bits)
            ends.removeAll(keepingCapacity: true)
            ends.append(contentsOf: repeatElement(0, count: 1 << bits))
            for item in items { ends[Int(item.bits >> shift)] += 1 }
            var sum: UInt32 = 0
            for index in ends.indices {
                let count = ends[index]
                ends[index] = sum
                sum += count
            }
            keys.removeAll(keepingCapacity: true)
            keys.append(contentsOf: repeatElement(0, count: items.count))
            for (index, item) in items.enumerated() {
                let bucket = Int(item.bits >> shift)
                keys[Int(ends[bucket])] = UInt64(item.bits) << 32 | UInt64(truncatingIfNeeded: index)
                ends[bucket] += 1
            }
            var start = 0
            for end in ends {
                if Int(end) - start > 1 { order(start..<Int(end), items) }
                start = Int(end)
            }
        }

        private mutating func order(_ range: Range<Int>, _ items: [Item]) {
            func precedes(_ left: UInt64, _ right: UInt64) -> Bool {
                if left >> 32 != right >> 32 { return left < right }
                return items[Self.index(left)].precedes(items[Self.index(right)])
            }
            // A key that was written over and over fills one bucket alone.
            guard range.count <= 16 else { return keys[range].sort(by: precedes) }
            for end in range.dropFirst() {
                var index = end
                while index > range.lowerBound, precedes(keys[index], keys[index - 1]) {
                    keys.swapAt(index, index - 1)
                    index -= 1
                }
            }
        }
    }
}
