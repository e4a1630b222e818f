// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastTesting
import Synchronization
import Testing

@testable import HoldfastStorage

@Suite("The sharded index", .timeLimit(.minutes(20)))
struct ShardedIndexTests {
    fileprivate static func row(_ primary: UInt64, variant: UInt32 = 0, order: UInt64) -> IndexRow {
        // Every part follows from the key and the order, so that a torn row can be told.
        let mix = (UInt32(truncatingIfNeeded: primary >> 16) ^ UInt32(truncatingIfNeeded: order)) & (1 << 30 - 1)
        return IndexRow(
            fragment: ShardedIndex.fragment(of: primary),
            variant: variant,
            place: RecordLocation(slot: UInt16(mix % 4_095), unit: mix, units: UInt16(truncatingIfNeeded: mix)),
            order: order
        )
    }

    @Test("Shard and fragment share no bits, and all shards are used")
    func bits() {
        #expect(ShardedIndex.number(of: .max) == 63)
        #expect(ShardedIndex.number(of: .max >> 6) == 0)
        #expect(ShardedIndex.fragment(of: 0xFFFF_F800_0000_0001) == 1)
        #expect(ShardedIndex.fragment(of: .max) == 1 << 43 - 1)
        let index = ShardedIndex()
        #expect(index.shards.count == 64)
        for number in 0..<64 {
            #expect(index.shard(of: UInt64(number) << 58 | 5) === index.shards[number])
        }
    }

    @Test("Rows are found, counted and marked by their primary key's hash alone")
    func rows() throws {
        let index = ShardedIndex()
        var generator = SeededGenerator(seed: 31)
        let keys = (0..<2_000).map { _ in generator.next() }
        for (number, key) in keys.enumerated() {
            _ = try index.shard(of: key).state.withLock { shard throws(StoreError) in
                try shard.table.insert(Self.row(key, order: UInt64(number + 1)))
            }
        }
        #expect(index.count == keys.count)
        let bytes = index.shards.map { shard in shard.state.withLock { $0.table.bytes } }
        #expect(bytes.reduce(0, +) >= keys.count * 24)
        for (number, key) in keys.enumerated() {
            var row = Self.row(key, order: UInt64(number + 1))
            #expect(index.rows(of: key) == .one(row))
            #expect(Self.use(key, in: index) != .none)
            row.mark = index.rows(of: key).all[0].mark
            #expect(index.rows(of: key) == .one(row))
            // The same fragment in another shard is another key.
            #expect(index.rows(of: key ^ 1 << 60) == .none)
        }
    }

    @Test("A key that left and comes back is known to have been requested")
    func comesBack() throws {
        let index = ShardedIndex()
        let marks = try index.shard(of: 5).state.withLock { shard throws(StoreError) in
            var row = Self.row(5, order: 1)
            row.mark = shard.frequencies.noteMiss(row.keyHash)
            _ = try shard.table.insert(row)
            let first = shard.frequencies.weight(row.mark)
            for _ in 0..<6 { _ = shard.table.useRows(5, frequencies: &shard.frequencies) }
            #expect(shard.remove(row.fragment, variant: row.variant, at: row.place) != nil)
            let back = shard.frequencies.noteMiss(row.keyHash)
            return [first, shard.frequencies.weight(back)]
        }
        #expect(marks[1] > marks[0] + 2 * Int32(DensityWeight.unit), "\(marks)")
    }

    @discardableResult
    fileprivate static func use(_ primary: UInt64, in index: ShardedIndex) -> RowMatches {
        index.shard(of: primary).state.withLock { shard in
            shard.table.useRows(fragment(of: primary), frequencies: &shard.frequencies)
        }
    }

    private static func fragment(of primary: UInt64) -> UInt64 { ShardedIndex.fragment(of: primary) }

    /// Threads of their own: the tasks' pool may have no more than the machine has cores.
    private final class Readers: Sendable {
        let index = ShardedIndex()
        let keys: [UInt64]
        let hasEnded = Atomic(false)
        let found = Atomic(0)
        let torn = Atomic(0)

        init(seed: UInt64) {
            var generator = SeededGenerator(seed: seed)
            // Two shards only, so that the threads meet.
            keys = (0..<3_000).map { _ in generator.next() & ~(0x3E << 58) }
        }

        func read(seed: UInt64) {
            var generator = SeededGenerator(seed: seed)
            var isLastRound = false
            while true {
                for _ in 0..<500 {
                    let key = keys[Int.random(in: keys.indices, using: &generator)]
                    guard case .one(let row) = index.rows(of: key) else { continue }
                    found.add(1, ordering: .relaxed)
                    var whole = ShardedIndexTests.row(key, order: row.order)
                    whole.mark = row.mark
                    if row != whole { torn.add(1, ordering: .relaxed) }
                    ShardedIndexTests.use(key, in: index)
                }
                if isLastRound { return }
                isLastRound = hasEnded.load(ordering: .acquiring)
            }
        }

        func change() {
            for round in 0..<3 {
                for (number, key) in keys.enumerated() {
                    let order = UInt64(round * keys.count + number + 1)
                    index.shard(of: key).state.withLock { shard in
                        _ = try? shard.table.insert(ShardedIndexTests.row(key, order: order))
                    }
                }
                // The first half goes, so that tables shrink too; the second stays for the readers.
                for key in keys[..<1_500] {
                    guard case .one(let row) = index.rows(of: key) else { continue }
                    index.shard(of: key).state.withLock { shard in
                        _ = shard.remove(row.fragment, variant: row.variant, at: row.place)
                    }
                }
            }
            hasEnded.store(true, ordering: .releasing)
        }
    }

    private static func onThread(_ work: @escaping @Sendable () -> Void) async {
        await withCheckedContinuation { continuation in
            Thread.detachNewThread {
                work()
                continuation.resume()
            }
        }
    }

    @Test(
        "Four reader threads see whole rows while a fifth inserts, replaces and removes",
        arguments: [41] as [UInt64]
    )
    func manyReaders(seed: UInt64) async {
        let readers = Readers(seed: seed)
        await withTaskGroup(of: Void.self) { group in
            for number in 1...4 {
                group.addTask { await Self.onThread { readers.read(seed: seed + UInt64(number)) } }
            }
            group.addTask { await Self.onThread { readers.change() } }
        }
        #expect(readers.torn.load(ordering: .relaxed) == 0, "seed \(seed)")
        #expect(readers.found.load(ordering: .relaxed) > 0)
        #expect(readers.index.count == 1_500)
    }
}
