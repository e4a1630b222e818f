// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// The state of one shard of the index: its rows, its writers, and what it knows about keys without a row.
struct Shard: ~Copyable {
    /// The entries.
    var table = RowTable()
    /// The entries being written.
    var writers = WritersInFlight()
    /// The keys for which a failed write may have left a record.
    var uncertain = UncertainWrites()
    /// How often the shard's keys were requested recently.
    var frequencies: KeyFrequencies
    /// The records between the reservation of their place and their publication.
    var pending: [PendingWrite] = []
    /// The primary keys whose tombstones are being written.
    var removing: [UInt64] = []

    /// An empty shard.
    init(seed: UInt64) {
        // A 64th of the minimum for one table for all keys.
        frequencies = KeyFrequencies(seed: seed, leastWords: 4)
    }

    /// Removes a row if it is still at a place, and returns it.
    @discardableResult
    mutating func remove(_ fragment: UInt64, variant: UInt32, at place: RecordLocation) -> IndexRow? {
        guard let gone = table.remove(fragment, variant: variant, at: place) else { return nil }
        frequencies.noteGone(gone.keyHash, mark: gone.mark)
        return gone
    }

    /// The value that ``RetentionPolicy`` uses; `bytes` are those of record and blob.
    func score(of row: IndexRow, bytes: Int) -> Int {
        RetentionPolicy.score(weight: frequencies.weight(row.mark), bytes: bytes, hash: row.keyHash)
    }
}

/// One shard and its lock, which is held briefly and never during I/O, `await` or a caller's code.
final class IndexShard: Sendable {
    let state: Mutex<Shard>

    init(seed: UInt64) { state = Mutex(Shard(seed: seed)) }
}

/// The index of a disk store in 64 shards: an entry's shard follows from the hash of its primary key.
///
/// All variants of a primary key are in one shard, so one shard's lock is enough to change them together. A lookup takes one lock,
/// and no allocation if at most one row matches.
final class ShardedIndex: Sendable {
    /// The number of shards.
    static let count = 64

    /// The shards; the top six bits of a primary key's hash choose.
    let shards: [IndexShard]

    /// An empty index.
    init() { shards = (0..<Self.count).map { IndexShard(seed: UInt64($0)) } }

    /// The number of the shard that contains everything about a primary key.
    static func number(of primary: UInt64) -> Int {
        Int(truncatingIfNeeded: primary >> 58)
    }

    /// The part of a primary key's hash that rows contain; has no bit in common with the shard's number.
    static func fragment(of primary: UInt64) -> UInt64 {
        primary & (1 << UInt64(IndexRow.fragmentBits) - 1)
    }

    /// The hash of a primary key, as far as a row and its shard's number determine it: everything that ``KeyHashing`` puts into
    /// one.
    static func primary(shard number: Int, _ fragment: UInt64) -> UInt64 {
        UInt64(truncatingIfNeeded: number) << 58 | fragment
    }

    /// Rows in order, starting at a place in a shard.
    func rows(from place: IndexPosition, limit: Int) -> [IndexRow] {
        shards[place.shard].state.withLock {
            $0.table.rows(from: place.fragment, variant: place.variant, limit: limit)
        }
    }

    /// The shard that contains everything about a primary key.
    func shard(of primary: UInt64) -> IndexShard {
        shards[Self.number(of: primary)]
    }

    /// The rows that may belong to the primary key with this hash.
    func rows(of primary: UInt64) -> RowMatches {
        shard(of: primary).state.withLock { $0.table.rows(Self.fragment(of: primary)) }
    }

    /// The number of rows in all shards; rows of shards that change meanwhile are counted before or after their change.
    var count: Int {
        shards.reduce(0) { sum, shard in sum + shard.state.withLock { $0.table.count } }
    }
}

/// The primary keys for which a failed write may have left a record on the disk, although the index knows none.
///
/// Code that removes such a key must write a tombstone even if the index has no row for it. The set is limited; once it could not
/// take a key, it contains every key until ``removeAll()``. No key leaves it before that: a tombstone that is written does not show
/// whether another write has failed since its order was taken, and all that an unneeded one costs is its bytes.
struct UncertainWrites: Sendable {
    /// The most keys stored individually.
    static let bound = 64

    private var primaries: Set<UInt64> = []

    /// Whether a key did not fit, so that every key counts as uncertain.
    private(set) var isOverfull = false

    /// Whether a record of the key with this hash may be on the disk without the index knowing it.
    func contains(_ primary: UInt64) -> Bool {
        isOverfull || primaries.contains(primary)
    }

    /// Notes that a write of this key failed midway.
    mutating func note(_ primary: UInt64) {
        guard primaries.count < Self.bound || primaries.contains(primary) else {
            isOverfull = true
            return
        }
        primaries.insert(primary)
    }

    /// Forgets every key: nothing is left on the disk.
    mutating func removeAll() {
        self = UncertainWrites()
    }
}

/// The entries being written, which a purge or an invalidation must reach too.
struct WritersInFlight: Sendable {
    /// One entry being written.
    struct Writer: Sendable {
        let key: StoreKey
        let variant: StoreKey
        let description: EntryDescription
        /// Bytes held against the capacity.
        var reserved = 0
        /// Set once the key was invalidated or purged: the bytes may be older than the reason.
        var isSuperseded = false
        /// Its number.
        fileprivate(set) var id: UInt64 = 0

        /// The entry as a purge's predicate sees it.
        func entry(now: StoreInstant) -> StoredEntry {
            StoredEntry(
                key: key,
                variant: variant,
                version: .beingWritten,
                description: description,
                bodyLength: 0,
                storedAt: now
            )
        }

        init(key: StoreKey, variant: StoreKey, description: EntryDescription, reserved: Int = 0) {
            (self.key, self.variant, self.description, self.reserved) = (key, variant, description, reserved)
        }
    }

    /// Every writer, by ascending number. There are few at a time, so a list is faster than any table.
    private(set) var all: [Writer] = []
    private var nextID: UInt64 = 0

    /// The bytes that all of them hold.
    private(set) var reserved = 0

    /// The writer with this number, unless it ended.
    subscript(id: UInt64) -> Writer? { place(of: id).map { all[$0] } }

    /// Adds a writer and numbers it.
    mutating func begin(_ writer: Writer) -> UInt64 {
        nextID &+= 1
        all.append(writer)
        all[all.count - 1].id = nextID
        reserved += writer.reserved
        return nextID
    }

    /// Adds a writer for a draft that is put in one step, which may take a while.
    mutating func begin(_ draft: EntryDraft) -> UInt64 {
        begin(Writer(key: draft.key, variant: draft.variant, description: draft.description))
    }

    /// Reserves `count` more bytes for a writer, or fewer if negative.
    mutating func reserve(_ count: Int, for id: UInt64) {
        guard let place = place(of: id) else { return }
        all[place].reserved += count
        reserved += count
    }

    /// Removes a writer, together with its bytes.
    @discardableResult
    mutating func end(_ id: UInt64) -> Writer? {
        guard let place = place(of: id) else { return nil }
        let writer = all.remove(at: place)
        reserved -= writer.reserved
        return writer
    }

    /// Whether this writer may commit; nil once it ended.
    func mayCommit(_ id: UInt64) -> Bool? { place(of: id).map { !all[$0].isSuperseded } }

    /// Whether an entry of `key` is being written.
    func hasWriters(of key: StoreKey) -> Bool { all.contains { $0.key == key } }

    /// Ensures that none of the writers for which `isMeant` is true commits.
    mutating func supersede(where isMeant: (Writer) -> Bool) {
        for place in all.indices where isMeant(all[place]) { all[place].isSuperseded = true }
    }

    private func place(of id: UInt64) -> Int? {
        var low = 0
        var high = all.count
        while low < high {
            let middle = (low + high) / 2
            if all[middle].id < id { low = middle + 1 } else { high = middle }
        }
        return low < all.count && all[low].id == id ? low : nil
    }
}

/// The position of a walk through all rows, in the order of shard, fragment and variant.
struct IndexPosition: Sendable {
    var shard = 0
    var fragment: UInt64 = 0
    var variant: UInt32 = 0

    /// Before the first row.
    init() {}

    /// The position of a cursor; before the first row if it has none.
    init(_ cursor: StoreCursor?) {
        guard let (number, bytes) = cursor?.parts, number < UInt64(ShardedIndex.count), bytes.count == 12 else {
            return
        }
        shard = Int(number)
        (fragment, variant) = bytes.withUnsafeBytes { ($0.number(at: 0), $0.number(at: 8)) }
    }

    var cursor: StoreCursor {
        let bytes = [UInt8](zeroed: 12) { bytes in
            bytes.put(fragment, at: 0)
            bytes.put(variant, at: 8)
        }
        return StoreCursor(number: UInt64(clamping: shard), bytes: bytes)
    }

    /// Whether no shard is left.
    var isEnd: Bool { shard >= ShardedIndex.count }

    /// Continues after a row; nil: in the next shard.
    mutating func pass(_ row: IndexRow?) {
        if let row, row.variant < .max {
            (fragment, variant) = (row.fragment, row.variant + 1)
        } else if let row, row.fragment + 1 < 1 << UInt64(IndexRow.fragmentBits) {
            (fragment, variant) = (row.fragment + 1, 0)
        } else {
            (shard, fragment, variant) = (shard + 1, 0, 0)
        }
    }

    /// Continues after rows of which at most `limit` were requested.
    mutating func pass(_ rows: [IndexRow], limit: Int) {
        pass(rows.count < limit ? nil : rows.last)
    }
}
