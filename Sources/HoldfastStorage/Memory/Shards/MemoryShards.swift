// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The shards of a ``MemoryStore``, in cache lines of their own and without a reference each: a hit would count that up and
/// down, and threads that ask for the same entry would wait for each other once more.
final class MemoryShards: Sendable {
    /// How many there are; the top five bits of a hash choose.
    static let count = 32

    private static let lines = 128
    private static let stride = (MemoryLayout<MemoryShard>.stride + lines - 1) / lines * lines

    // Proof: set in `init`, and never again; what it points to is filled there, Sendable, and freed in `deinit`, when nobody can reach
    // it any more. MemoryStoreStressTests uses it from many threads.
    private nonisolated(unsafe) let base: UnsafeMutableRawPointer

    /// Empty shards.
    init() {
        base = .allocate(byteCount: Self.count * Self.stride, alignment: Self.lines)
        for number in 0..<Self.count {
            let place = base.advanced(by: number * Self.stride).bindMemory(to: MemoryShard.self, capacity: 1)
            place.initialize(to: MemoryShard())
        }
    }

    deinit {
        for number in 0..<Self.count { place(number).deinitialize(count: 1) }
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
        place(number).pointee.reading(body)
    }

    /// See ``MemoryShard/takeNotes(_:)``.
    func takeNotes(_ number: Int, _ tickets: inout [SlotTicket]) -> StoreInstant? {
        place(number).pointee.takeNotes(&tickets)
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
}
