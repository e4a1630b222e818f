// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// The state of one stripe of threads: its own snapshots of entries that several threads request at once.
///
/// Without them, each hit of a popular entry would change the reference counts of the same objects and take the same lock, and
/// processors would wait for each other's cache lines. So each stripe has copies; a copy is as good as its shard's table as long as
/// the shard has not changed since it was made.
struct HotEntryCacheState: Sendable {
    private struct Copy: Sendable {
        let hash: UInt64
        let key: StoreKey
        /// The shard's change count when it was made.
        let change: Int
        let entries: [StoredEntry]
        let handle: SlotHandle
    }

    /// The most copies held.
    static let size = 16

    private var copies = [Copy?](repeating: nil, count: Self.size)
    /// Hashes of keys whose shard's lock was found taken, each at its place.
    private var met = [UInt64](repeating: 0, count: Self.size)
    /// The uses that were not passed on yet.
    var buffer = ReadBuffer()
    private(set) var lookups = 0

    /// What a lookup finds here; nil if nothing here is as good as the shard's table.
    mutating func lookUp(_ key: StoreKey, hash: UInt64, change: Int, now: StoreInstant) -> ShardState.Found? {
        let place = Self.place(hash)
        guard copies[place]?.hash == hash, copies[place]?.change == change, let copy = copies[place],
            copy.key == key
        else { return nil }
        buffer.latestNow = now
        lookups &+= 1
        let isDue = copy.handle != .none && buffer.note(copy.handle)
        return ShardState.Found(entries: copy.entries, isDue: isDue, isClosed: false)
    }

    /// Whether a key whose lock was found taken is worth a copy: from the second time on.
    mutating func isWorth(_ hash: UInt64) -> Bool {
        let place = Self.place(hash)
        defer { met[place] = hash }
        return met[place] == hash
    }

    /// Adds a copy of what a lookup found.
    mutating func add(_ key: StoreKey, hash: UInt64, change: Int, entries: [StoredEntry]) {
        let records = entries.compactMap { MemoryRecord($0) }
        guard !records.isEmpty, records.count == entries.count else { return }
        copies[Self.place(hash)] = Copy(
            hash: hash,
            key: StoreKey(key.bytes.map { $0 }),
            change: change,
            entries: records.map { MemoryRecord($0.entry, held: ResidentBody(copying: $0.held)).entry },
            handle: records.count == 1 ? records[0].handle : .none
        )
    }

    /// Drops the outdated copies, so that they hold no memory.
    ///
    /// - Returns: whether some are left.
    mutating func drop(_ isCurrent: (_ hash: UInt64, _ change: Int) -> Bool) -> Bool {
        var isAnyLeft = false
        for place in copies.indices {
            guard let copy = copies[place] else { continue }
            if isCurrent(copy.hash, copy.change) { isAnyLeft = true } else { copies[place] = nil }
        }
        return isAnyLeft
    }

    private static func place(_ hash: UInt64) -> Int { Int(truncatingIfNeeded: hash >> 16) & (size - 1) }
}

/// The copies of one stripe and their lock.
struct HotEntryCache: ~Copyable, Sendable {
    private let state = Mutex(HotEntryCacheState())
    /// Whether there may be copies; a hint that saves the lock.
    private let isUsed = Atomic(false)

    /// Whether a lookup may find something here.
    var mayHold: Bool { isUsed.load(ordering: .relaxed) }

    /// Runs `body` with the lock held.
    func withLock<Result: Sendable>(_ body: (inout HotEntryCacheState) -> Result) -> Result {
        state.withLock { body(&$0) }
    }

    /// Like ``HotEntryCacheState/add(_:_:change:_:)``, but only from the second time that the key's lock was found taken.
    func add(_ key: StoreKey, hash: UInt64, change: Int, entries: [StoredEntry]) {
        state.withLock { state in
            guard state.isWorth(hash) else { return }
            state.add(key, hash: hash, change: change, entries: entries)
            isUsed.store(true, ordering: .relaxed)
        }
    }

    /// Like ``HotEntryCacheState/drop(_:)``.
    func drop(_ isCurrent: (_ hash: UInt64, _ change: Int) -> Bool) {
        guard mayHold else { return }
        state.withLock { state in isUsed.store(state.drop(isCurrent), ordering: .relaxed) }
    }
}
