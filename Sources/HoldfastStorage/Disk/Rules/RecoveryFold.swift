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

    private struct Item {
        let row: TableRow
        let slot: UInt16

        var fragment: UInt64 { ShardedIndex.fragment(of: row.primary) }

        /// By fragment, variant, order and slot; the place makes it total.
        func precedes(_ other: Item) -> Bool {
            if fragment != other.fragment { return fragment < other.fragment }
            if row.variant != other.row.variant { return row.variant < other.row.variant }
            if row.order != other.row.order { return row.order < other.row.order }
            return slot != other.slot ? slot < other.slot : row.place < other.row.place
        }
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
        var sorted: [Item] = []
        var winners: [Winner] = []
        for shard in 0..<ShardedIndex.count {
            items.removeAll(keepingCapacity: true)
            winners.removeAll(keepingCapacity: true)
            for index in runs.indices {
                positions[index] = take(shard, of: runs[index], from: positions[index], &items)
            }
            Self.sort(&items, into: &sorted)
            Self.judge(sorted, &winners)
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

    /// Sorts by dealing the items to as many buckets as there are items: fragments are hashes, so most hold one or two.
    private static func sort(_ items: inout [Item], into sorted: inout [Item]) {
        let bits = items.count < 2 ? 0 : Int.bitWidth - (items.count - 1).leadingZeroBitCount
        func bucket(_ item: Item) -> Int { bits == 0 ? 0 : Int(item.fragment >> UInt64(IndexRow.fragmentBits - min(bits, 31))) }
        var starts = [Int](repeating: 0, count: (1 << min(bits, 31)) + 1)
        for item in items { starts[bucket(item) + 1] += 1 }
        for index in 1..<starts.count { starts[index] += starts[index - 1] }
        let bounds = starts
        sorted = items
        for item in items {
            let bucket = bucket(item)
            sorted[starts[bucket]] = item
            starts[bucket] += 1
        }
        for index in 0..<(bounds.count - 1) where bounds[index + 1] - bounds[index] > 1 {
            order(&sorted, bounds[index]..<bounds[index + 1])
        }
    }

    private static func order(_ items: inout [Item], _ range: Range<Int>) {
        // A key that was written over and over fills one bucket alone.
        guard range.count <= 16 else {
            items[range].sort { $0.precedes($1) }
            return
        }
        for end in range.dropFirst() {
            var index = end
            while index > range.lowerBound, items[index].precedes(items[index - 1]) {
                items.swapAt(index, index - 1)
                index -= 1
            }
        }
    }

    private static func judge(_ items: [Item], _ winners: inout [Winner]) {
        var start = 0
        while start < items.count {
            let fragment = items[start].fragment
            var end = start
            var killed: UInt64 = 0
            while end < items.count, items[end].fragment == fragment {
                if items[end].row.kind == .primaryTombstone { killed = max(killed, items[end].row.order) }
                end += 1
            }
            judge(items, start..<end, killed: killed, &winners)
            start = end
        }
    }

    /// Judges the variants of one primary key, whose tombstones reach up to the order `killed`.
    private static func judge(_ items: [Item], _ range: Range<Int>, killed: UInt64, _ winners: inout [Winner]) {
        var start = range.lowerBound
        while start < range.upperBound {
            let variant = items[start].row.variant
            var killed = killed
            var entries = 0
            var last = start
            var index = start
            while index < range.upperBound, items[index].row.variant == variant {
                if items[index].row.kind == .entry {
                    entries += 1
                    last = index
                } else if items[index].row.kind == .variantTombstone {
                    killed = max(killed, items[index].row.order)
                }
                index += 1
            }
            if entries > 0, items[last].row.order > killed { winners.append(winner(items[last], shadows: entries > 1)) }
            start = index
        }
    }

    private static func winner(_ item: Item, shadows: Bool) -> Winner {
        let row = item.row
        return Winner(
            primary: row.primary,
            row: IndexRow(
                fragment: item.fragment,
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
