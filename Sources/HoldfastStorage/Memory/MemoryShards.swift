// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// The shards of a ``MemoryStore``, in their own cache lines and without a reference for each: every hit would change its count,
/// and threads that request the same entry would wait for each other once more.
final class MemoryShards: Sendable {
    /// How many there are; the top five bits of a hash choose.
    static let count = 32

    private static let lines = 128
    private static let stride = (MemoryLayout<MemoryShard>.stride + lines - 1) / lines * lines
    static let stripes = 16
    private static let copyStride = (MemoryLayout<HotEntryCache>.stride + lines - 1) / lines * lines

    // Proof: set only in `init`; what it points to is initialized there, Sendable, and freed in `deinit`, when nobody can reach it
    // any more. MemoryStoreStressTests uses it from many threads.
    private nonisolated(unsafe) let base: UnsafeMutableRawPointer

    /// Empty shards.
    init() {
        base = .allocate(
            byteCount: Self.count * (Self.stride + Self.lines) + Self.stripes * Self.copyStride,
            alignment: Self.lines
        )
        for number in 0..<Self.count {
            let place = base.advanced(by: number * Self.stride).bindMemory(to: MemoryShard.self, capacity: 1)
            place.initialize(to: MemoryShard())
            changes(number).initialize(to: Atomic(0))
        }
        for stripe in 0..<Self.stripes { copies(stripe).initialize(to: HotEntryCache()) }
    }

    deinit {
        for number in 0..<Self.count {
            place(number).deinitialize(count: 1)
            changes(number).deinitialize(count: 1)
        }
        for stripe in 0..<Self.stripes { copies(stripe).deinitialize(count: 1) }
        base.deallocate()
    }

    /// Runs `body` under a shard's lock; see ``MemoryShard/withLock(_:)``.
    @inline(__always)
    func withLock<Result: Sendable, Failure: Error>(
        _ number: Int,
        body: (inout ShardState) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try place(number).pointee.withLock(body)
    }

    /// Like ``withLock(_:_:)``, for code that may note hits.
    @inline(__always)
    func reading<Result: Sendable>(_ number: Int, body: (inout ShardState) -> Result) -> Result {
        place(number).pointee.reading(body).result
    }

    /// Like ``withLock(_:_:)``, for code that changes the table: earlier copies are outdated from now on.
    @inline(__always)
    func changing<Result: Sendable>(_ number: Int, body: (inout ShardState) -> Result) -> Result {
        place(number).pointee.withLock { state in
            changes(number).pointee.add(1, ordering: .releasing)
            return body(&state)
        }
    }

    /// The variants of a key, and the shard or stripe where the hit was noted if it is time to pass the notes on.
    func lookUp(_ key: StoreKey, hash: UInt64, now: StoreInstant) -> (found: ShardState.Found, due: ReadBufferID?) {
        let number = Self.number(of: hash)
        let stripe = ThreadStripe.current(of: Self.stripes)
        let hot = copies(stripe)
        if hot.pointee.mayHold {
            let change = changes(number).pointee.load(ordering: .acquiring)
            if let found = hot.pointee.withLock({ $0.lookUp(key, hash: hash, change: change, now: now) }) {
                return (found, found.isDue ? .stripe(stripe) : nil)
            }
        }
        let ((found, change), wasContended) = place(number).pointee.reading { state in
            (state.lookUp(key, hash: hash, now: now), changes(number).pointee.load(ordering: .relaxed))
        }
        if wasContended, !found.entries.isEmpty {
            hot.pointee.add(key, hash: hash, change: change, entries: found.entries)
            // A thread that changed the shard meanwhile may have dropped copies before this one was added.
            if changes(number).pointee.load(ordering: .acquiring) != change { dropCopies() }
        }
        return (found, found.isDue ? .shard(number) : nil)
    }

    /// Drops outdated copies.
    func dropCopies() {
        for stripe in 0..<Self.stripes {
            copies(stripe).pointee.drop { hash, change in
                changes(Self.number(of: hash)).pointee.load(ordering: .relaxed) == change
            }
        }
    }

    /// The number of lookups that copies answered.
    var lookupsOfCopies: Int {
        (0..<Self.stripes).reduce(0) { sum, stripe in sum &+ copies(stripe).pointee.withLock { $0.lookups } }
    }

    /// Where a hit was noted.
    enum ReadBufferID: Sendable {
        case shard(Int)
        case stripe(Int)

        /// Every place, always in the same order.
        static let all = (0..<count).map { ReadBufferID.shard($0) } + (0..<stripes).map { ReadBufferID.stripe($0) }
    }

    /// See ``MemoryShard/drainReads(_:)``.
    func drainReads(_ noted: ReadBufferID, handles: inout [SlotHandle]) -> StoreInstant? {
        switch noted {
        case .shard(let number): return place(number).pointee.drainReads(&handles)
        case .stripe(let stripe):
            guard copies(stripe).pointee.mayHold else { return nil }
            return copies(stripe).pointee.withLock { state in state.buffer.drain { handles.append($0) } }
        }
    }

    /// The number of the shard that contains everything about a primary key.
    static func number(of hash: UInt64) -> Int {
        Int(truncatingIfNeeded: hash >> 59)
    }

    @inline(__always)
    private func place(_ number: Int) -> UnsafeMutablePointer<MemoryShard> {
        precondition(number >= 0 && number < Self.count, "There is no shard \(number)")
        return base.advanced(by: number * Self.stride).assumingMemoryBound(to: MemoryShard.self)
    }

    func changes(_ number: Int) -> UnsafeMutablePointer<Atomic<Int>> {
        precondition(number >= 0 && number < Self.count, "There is no shard \(number)")
        return base.advanced(by: Self.count * Self.stride + number * Self.lines)
            .assumingMemoryBound(to: Atomic<Int>.self)
    }

    func copies(_ stripe: Int) -> UnsafeMutablePointer<HotEntryCache> {
        precondition(stripe >= 0 && stripe < Self.stripes, "There is no stripe \(stripe)")
        return base.advanced(by: Self.count * (Self.stride + Self.lines) + stripe * Self.copyStride)
            .assumingMemoryBound(to: HotEntryCache.self)
    }
}

/// The state of one shard of a ``MemoryStore``: a part of the entries, and what was counted and noted when they were read.
struct ShardState: Sendable {
    /// The result of a lookup.
    struct Found: Sendable {
        let entries: [StoredEntry]
        /// Whether the noted hits should be passed on to the policy.
        let isDue: Bool
        let isClosed: Bool
    }

    var table = GroupTable()
    /// The uses that were not passed on yet.
    var buffer = ReadBuffer()
    private(set) var lookups = 0
    private(set) var lookupsFound = 0
    private(set) var isClosed = false

    /// The variants of a key; a hit of an only variant counts as its use.
    mutating func lookUp(_ key: StoreKey, hash: UInt64, now: StoreInstant) -> Found {
        buffer.latestNow = now
        lookups &+= 1
        guard let place = table.place(of: key, hash) else {
            return Found(entries: [], isDue: false, isClosed: isClosed)
        }
        lookupsFound &+= 1
        let handle = table.groups[place].onlyHandle
        let isDue = handle != .none && buffer.note(handle)
        return Found(entries: table.groups[place].entries, isDue: isDue, isClosed: false)
    }

    /// One version, if it is still there.
    func record(of entry: StoredEntry, _ hash: UInt64) -> MemoryRecord? {
        guard let place = table.place(of: entry.key, hash) else { return nil }
        return table.groups[place].entries.first { $0.isVersion(of: entry) }.flatMap { MemoryRecord($0) }
    }

    /// Removes the record with this handle, which has left the accounting.
    mutating func remove(_ handle: SlotHandle, hash: UInt64) -> MemoryRecord? {
        for place in table.places(hash: hash) {
            var records = table.groups[place].records
            guard let index = records.firstIndex(where: { $0.handle == handle }) else { continue }
            let gone = records.remove(at: index)
            table.replace(table.groups[place].key, hash: hash, with: records)
            return gone
        }
        return nil
    }

    /// Drops everything permanently.
    mutating func close() {
        for entry in table.groups.lazy.flatMap(\.entries) { entry.held?.setGone() }
        table.removeAll()
        isClosed = true
    }
}

/// One shard and its lock, which is held briefly and never during `await` or a caller's code.
struct MemoryShard: ~Copyable, Sendable {
    private static let attempts = 8

    private let state = Mutex(ShardState())
    /// Whether there may be something to drain; a hint that saves the lock.
    private let hasReads = Atomic(false)
    /// Whether the lock is held; a hint that saves a system call.
    private let isHeld = Atomic(false)

    /// Runs `body` under the lock.
    ///
    /// The lock is held for some tens of nanoseconds. If it is not free, the thread spins for longer than that and tries again a
    /// few times before it sleeps: threads that request the same entry then take turns of several hits, during which the entry
    /// stays in one processor's cache, and the kernel need not wake a thread for each.
    func withLock<Result: Sendable, Failure: Error>(
        _ body: (inout ShardState) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try withLockReportingContention(body).result
    }

    /// Like ``withLock(_:)``; also returns whether the lock was found taken.
    private func withLockReportingContention<Result: Sendable, Failure: Error>(
        _ body: (inout ShardState) throws(Failure) -> Result
    ) throws(Failure) -> (result: Result, wasContended: Bool) {
        for attempt in 0..<Self.attempts {
            if !isHeld.load(ordering: .relaxed) {
                let result = try state.withLockIfAvailable { state throws(Failure) in
                    isHeld.store(true, ordering: .relaxed)
                    defer { isHeld.store(false, ordering: .relaxed) }
                    return try body(&state)
                }
                if let result { return (result, attempt > 0) }
            }
            Self.spin(256 << min(attempt, 3))
        }
        let result = try state.withLock { state throws(Failure) in
            isHeld.store(true, ordering: .relaxed)
            defer { isHeld.store(false, ordering: .relaxed) }
            return try body(&state)
        }
        return (result, true)
    }

    /// Spins for this many steps of about a cycle, without touching memory that others use.
    private static func spin(_ steps: Int) {
        let idle = Atomic(0)
        for step in 0..<steps { idle.store(step, ordering: .relaxed) }
    }

    /// Like ``withLock(_:)``, for code that may note hits.
    func reading<Result: Sendable>(
        _ body: (inout ShardState) -> Result
    ) -> (result: Result, wasContended: Bool) {
        let result = withLockReportingContention(body)
        if !hasReads.load(ordering: .relaxed) { hasReads.store(true, ordering: .relaxed) }
        return result
    }

    /// The noted handles in order, and the instant of the latest lookup.
    func drainReads(_ handles: inout [SlotHandle]) -> StoreInstant? {
        guard hasReads.load(ordering: .relaxed) else { return nil }
        hasReads.store(false, ordering: .relaxed)
        return withLock { state in state.buffer.drain { handles.append($0) } }
    }
}

extension StoredEntry {
    /// Whether this is the same version of the same variant; the primary keys are known to be equal.
    func isVersion(of other: StoredEntry) -> Bool {
        version == other.version && variant == other.variant
    }
}
