// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// The shards of a ``MemoryStore``, in cache lines of their own and without a reference each: a hit would count that up and
/// down, and threads that ask for the same entry would wait for each other once more.
final class MemoryShards: Sendable {
    /// How many there are; the top five bits of a hash choose.
    static let count = 32

    private static let lines = 128
    private static let stride = (MemoryLayout<MemoryShard>.stride + lines - 1) / lines * lines
    static let stripes = 16
    private static let copyStride = (MemoryLayout<HotCopies>.stride + lines - 1) / lines * lines

    // Proof: set in `init`, and never again; what it points to is filled there, Sendable, and freed in `deinit`, when nobody can reach
    // it any more. MemoryStoreStressTests uses it from many threads.
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
        for stripe in 0..<Self.stripes { copies(stripe).initialize(to: HotCopies()) }
    }

    deinit {
        for number in 0..<Self.count {
            place(number).deinitialize(count: 1)
            changes(number).deinitialize(count: 1)
        }
        for stripe in 0..<Self.stripes { copies(stripe).deinitialize(count: 1) }
        base.deallocate()
    }

    /// Runs `body` with the lock of a shard held; see ``MemoryShard/withLock(_:)``.
    @inline(__always)
    func withLock<Result: Sendable, Failure: Error>(
        _ number: Int,
        _ body: (inout ShardState) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try place(number).pointee.withLock(body)
    }

    /// As ``withLock(_:_:)``, for what may note hits.
    @inline(__always)
    func reading<Result: Sendable>(_ number: Int, _ body: (inout ShardState) -> Result) -> Result {
        place(number).pointee.reading(body).result
    }

    /// As ``withLock(_:_:)``, for what changes the table: copies made before are out of date from here on.
    @inline(__always)
    func changing<Result: Sendable>(_ number: Int, _ body: (inout ShardState) -> Result) -> Result {
        place(number).pointee.withLock { state in
            changes(number).pointee.add(1, ordering: .releasing)
            return body(&state)
        }
    }

    /// The variants of a key, and the shard or the stripe in which the hit was noted where it is time to pass the notes on.
    func lookUp(_ key: StoreKey, _ hash: UInt64, now: StoreInstant) -> (found: ShardState.Found, due: NotePlace?) {
        let number = Self.number(of: hash)
        let stripe = ThreadStripe.current(of: Self.stripes)
        let hot = copies(stripe)
        if hot.pointee.mayHold {
            let change = changes(number).pointee.load(ordering: .acquiring)
            if let found = hot.pointee.withLock({ $0.lookUp(key, hash, change: change, now: now) }) {
                return (found, found.isDue ? .stripe(stripe) : nil)
            }
        }
        let ((found, change), wasTaken) = place(number).pointee.reading { state in
            (state.lookUp(key, hash, now: now), changes(number).pointee.load(ordering: .relaxed))
        }
        if wasTaken, !found.entries.isEmpty {
            hot.pointee.add(key, hash, change: change, found.entries)
            // Whoever changed the shard meanwhile may have dropped copies before this one was there.
            if changes(number).pointee.load(ordering: .acquiring) != change { dropCopies() }
        }
        return (found, found.isDue ? .shard(number) : nil)
    }

    /// Drops copies that are out of date.
    func dropCopies() {
        for stripe in 0..<Self.stripes {
            copies(stripe).pointee.drop { hash, change in
                changes(Self.number(of: hash)).pointee.load(ordering: .relaxed) == change
            }
        }
    }

    /// Look-ups that copies answered.
    var lookupsOfCopies: Int {
        (0..<Self.stripes).reduce(0) { sum, stripe in sum &+ copies(stripe).pointee.withLock { $0.lookups } }
    }

    /// Where a hit was noted.
    enum NotePlace: Sendable {
        case shard(Int)
        case stripe(Int)

        /// Every place, in an order that is always the same.
        static let all = (0..<count).map { NotePlace.shard($0) } + (0..<stripes).map { NotePlace.stripe($0) }
    }

    /// See ``MemoryShard/takeNotes(_:)``.
    func takeNotes(_ noted: NotePlace, _ tickets: inout [SlotTicket]) -> StoreInstant? {
        switch noted {
        case .shard(let number): return place(number).pointee.takeNotes(&tickets)
        case .stripe(let stripe):
            guard copies(stripe).pointee.mayHold else { return nil }
            return copies(stripe).pointee.withLock { state in state.drain { tickets.append($0) } }
        }
    }

    /// The number of the shard in which everything about a primary key lies.
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

    func copies(_ stripe: Int) -> UnsafeMutablePointer<HotCopies> {
        precondition(stripe >= 0 && stripe < Self.stripes, "There is no stripe \(stripe)")
        return base.advanced(by: Self.count * (Self.stride + Self.lines) + stripe * Self.copyStride)
            .assumingMemoryBound(to: HotCopies.self)
    }
}
