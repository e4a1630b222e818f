// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// What one shard of the index guards: its rows, its writers, and what it knows of keys that have no row.
struct Shard: ~Copyable {
    /// How many evicted keys are remembered for each entry; figures in docs/decisions/storage/0016.
    static let ghostsPerEntry = 2

    /// The entries.
    var table = RowTable()
    /// The entries being written.
    var writers = WritersInFlight()
    /// The keys of which a failed write may have left a record.
    var lingering = Lingering()
    /// The keys evicted lately.
    var ghosts = GhostTable()
    /// The records between the reservation of their place and their publication.
    var pending: [PendingWrite] = []
    /// The primary keys whose tombstones are being written.
    var removing: [UInt64] = []

    /// Notes that the entry with this hash of its primary key was evicted.
    mutating func noteEvicted(_ primary: UInt64) {
        ghosts.note(primary, entries: Self.ghostsPerEntry * table.count)
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

    /// The rows of all shards; those of shards that change meanwhile are counted before or after their change.
    var count: Int {
        shards.reduce(0) { sum, shard in sum + shard.state.withLock { $0.table.count } }
    }

    /// The bytes of memory that rows and fingerprints hold.
    var bytes: Int {
        shards.reduce(0) { sum, shard in sum + shard.state.withLock { $0.table.bytes + $0.ghosts.bytes } }
    }
}
