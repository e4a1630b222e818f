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
    /// How often the shard's keys were asked for of late.
    var frequencies: KeyFrequencies
    /// The records between the reservation of their place and their publication.
    var pending: [PendingWrite] = []
    /// The primary keys whose tombstones are being written.
    var removing: [UInt64] = []

    /// A shard of nothing.
    init(seed: UInt64) {
        // A 64th of what one for all keys would take at least.
        frequencies = KeyFrequencies(seed: seed, leastWords: 4)
    }

    /// Takes a row out, if it is still at a place, and returns it.
    @discardableResult
    mutating func remove(_ fragment: UInt64, variant: UInt32, at place: RecordPlace) -> IndexRow? {
        guard let gone = table.remove(fragment, variant: variant, at: place) else { return nil }
        frequencies.noteGone(gone.keyHash, gone.mark)
        return gone
    }

    /// What ``CarryJudge`` goes by; `bytes` are those of record and blob.
    func score(of row: IndexRow, bytes: Int) -> Int {
        CarryJudge.score(weight: frequencies.weight(row.mark), bytes: bytes, hash: row.keyHash)
    }
}

/// One shard and its lock, which is held for short and never over I/O, `await` or a caller's code.
final class IndexShard: Sendable {
    let state: Mutex<Shard>

    init(seed: UInt64) {
        state = Mutex(Shard(seed: seed))
    }
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
        shards = (0..<Self.count).map { IndexShard(seed: UInt64($0)) }
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

    /// The rows of all shards; those of shards that change meanwhile are counted before or after their change.
    var count: Int {
        shards.reduce(0) { sum, shard in sum + shard.state.withLock { $0.table.count } }
    }

    /// The bytes of memory that rows and frequencies hold.
    var bytes: Int {
        shards.reduce(0) { sum, shard in sum + shard.state.withLock { $0.table.bytes + $0.frequencies.bytes } }
    }
}
