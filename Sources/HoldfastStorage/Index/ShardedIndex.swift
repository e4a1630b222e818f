// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// What one shard of the index guards: its rows, its writers, and what it knows of keys that have no row.
struct Shard: ~Copyable {
    /// The entries.
    var table = RowTable()
    /// The entries being written.
    var writers = WritersInFlight()
    /// The keys of which a failed write may have left a record.
    var lingering = Lingering()
    /// How often keys were asked for of late, whether they have a row or not.
    var sketch = AgingSketch()
    /// The records between the reservation of their place and their publication.
    var pending: [PendingWrite] = []
    /// The primary keys whose tombstones are being written.
    var removing: [UInt64] = []

    /// Counts a request for the primary key with this hash.
    mutating func noteRequest(_ primary: UInt64) {
        if sketch.isTooSmall(for: table.count) {
            sketch.grow(for: table.count) { keep in
                table.forEach { keep(UInt32(truncatingIfNeeded: $0.fragment)) }
            }
        }
        sketch.add(UInt32(truncatingIfNeeded: primary))
    }

    /// Counts a hit of each row of the primary key with this hash and returns them with it.
    mutating func touchRows(_ primary: UInt64) -> RowMatches {
        let rows = table.touchRows(ShardedIndex.fragment(of: primary))
        if case .none = rows { return rows }
        noteRequest(primary)
        return rows
    }

    /// How often the primary key with this hash was asked for of late: 0 to 15.
    func frequency(of primary: UInt64) -> Int {
        sketch.estimate(UInt32(truncatingIfNeeded: primary))
    }

    /// So many rows drawn at random; nil: all.
    func draws(_ number: Int?, using random: inout PolicyRandom) -> [WorthSample.Draw] {
        var draws: [WorthSample.Draw] = []
        guard let number else {
            table.forEach { draws.append(draw($0)) }
            return draws
        }
        for _ in 0..<number {
            if let row = table.randomRow(using: &random) { draws.append(draw(row)) }
        }
        return draws
    }

    private func draw(_ row: IndexRow) -> WorthSample.Draw {
        let bytes = max(1, row.bytes)
        return WorthSample.Draw(worth: worth(row, bytes: bytes), bytes: bytes, segment: row.place.slot)
    }

    /// What keeping the entry of a row is worth.
    func worth(_ row: IndexRow, bytes: Int) -> Int32 {
        let frequency = sketch.estimate(UInt32(truncatingIfNeeded: row.fragment))
        return EntryWorth.of(frequency: frequency, wasUsed: row.hits > 0, bytes: bytes)
    }
}

/// One shard and its lock, which is held for short and never over I/O, `await` or a caller's code.
final class IndexShard: Sendable {
    let state = Mutex(Shard())
}

/// The index of a disk store in 64 shards: an entry's shard follows from the hash of its primary key.
///
/// All variants of a primary key lie in one shard, so a lock of one shard is enough to change them together. A look-up
/// takes one lock and no allocation where at most one row matches.
final class ShardedIndex: Sendable {
    /// The number of shards.
    static let count = 64

    /// The shards; the top six bits of a primary key's hash choose.
    let shards: [IndexShard]

    /// An empty index.
    init() {
        shards = (0..<Self.count).map { _ in IndexShard() }
    }

    /// The number of the shard in which everything about a primary key lies.
    static func number(of primary: UInt64) -> Int {
        Int(truncatingIfNeeded: primary >> 58)
    }

    /// The part of a primary key's hash that rows keep; shares no bit with the shard's number.
    static func fragment(of primary: UInt64) -> UInt64 {
        primary & (1 << UInt64(IndexRow.fragmentBits) - 1)
    }

    /// The hash of a primary key, as far as a row and its shard's number tell it: all that ``KeyHashing`` puts into one.
    static func primary(shard number: Int, _ fragment: UInt64) -> UInt64 {
        UInt64(truncatingIfNeeded: number) << 58 | fragment
    }

    /// The shard in which everything about a primary key lies.
    func shard(of primary: UInt64) -> IndexShard {
        shards[Self.number(of: primary)]
    }

    /// The rows that may be of the primary key with this hash.
    func rows(of primary: UInt64) -> RowMatches {
        shard(of: primary).state.withLock { $0.table.rows(Self.fragment(of: primary)) }
    }

    /// Counts a hit of a row of the primary key with this hash, if it is still at its place.
    func touch(_ primary: UInt64, _ row: IndexRow) {
        // A row read thrice has nothing to count.
        guard row.hits < IndexRow.highestHits else { return }
        shard(of: primary).state.withLock { $0.table.touch(row.fragment, variant: row.variant, at: row.place) }
    }

    /// Worths of rows drawn at random, of all where there are few; a shard's lock is held for some microseconds.
    func draws(using random: inout PolicyRandom) -> [WorthSample.Draw] {
        let count = count
        var draws: [WorthSample.Draw] = []
        draws.reserveCapacity(WorthSample.size)
        let takesAll = count <= WorthSample.size
        for shard in shards {
            // As many as the shard has a part in all rows.
            draws += shard.state.withLock { shard in
                let share = takesAll ? nil : max(1, shard.table.count * WorthSample.size / count)
                return shard.draws(share, using: &random)
            }
        }
        return draws
    }

    /// The rows of all shards; those of shards that change meanwhile are counted before or after their change.
    var count: Int {
        shards.reduce(0) { sum, shard in sum + shard.state.withLock { $0.table.count } }
    }

    /// The bytes of memory that rows and sketches hold.
    var bytes: Int {
        shards.reduce(0) { sum, shard in sum + shard.state.withLock { $0.table.bytes + $0.sketch.bytes } }
    }
}
