// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import Testing

@testable import HoldfastSimulation
@testable import HoldfastStorage

@Suite("Published policies", .timeLimit(.minutes(20)))
struct PublishedOrderTests {
    /// Asks for slots one after another, each of a size that depends on its number, and gives what left at each request.
    private func victims(
        _ strategy: EvictionStrategy,
        capacity: Int,
        _ requests: [UInt32],
        size: (UInt32) -> Int = { _ in 1 }
    ) -> [[UInt32]] {
        var policy = strategy.makePolicy(capacity: capacity)
        return requests.map { slot in
            var victims: [UInt32] = []
            if policy.holds(slot) {
                policy.use(slot)
            } else {
                let key = SplitMix64.mixed(UInt64(slot))
                policy.insert(slot, key: key, size: size(slot), victims: &victims)
            }
            return victims
        }
    }

    @Test("FIFO: a use changes nothing")
    func fifo() {
        #expect(victims(.fifo, capacity: 3, [1, 2, 3, 1, 4, 5]) == [[], [], [], [], [1], [2]])
        #expect(victims(.fifo, capacity: 10, [1, 2, 9, 11], size: { Int($0) }) == [[], [], [1, 2], [11]])
    }

    @Test("LRU: a use moves an entry to the front")
    func lru() {
        #expect(victims(.lru, capacity: 3, [1, 2, 3, 1, 4, 5]) == [[], [], [], [], [2], [3]])
    }

    @Test("SIEVE: the hand skips used entries, and stays where it evicted")
    func sieve() {
        // 1 is used: the hand clears it, evicts 2 and stands at 3, which leaves next although 1 is older.
        #expect(victims(.sieve, capacity: 3, [1, 2, 3, 1, 4, 5, 6]) == [[], [], [], [], [2], [3], [4]])
        // All are used: the hand clears all of them and comes back to the oldest.
        #expect(victims(.sieve, capacity: 2, [1, 2, 1, 2, 3]) == [[], [], [], [], [1]])
    }

    @Test("GDSF: the entry with the fewest uses per byte leaves, even the new one")
    func gdsf() {
        // Priorities: 1 has 3 uses, 2 has 1, 3 comes with 1: of equals the one used longest ago leaves.
        #expect(victims(.gdsf, capacity: 2, [1, 1, 1, 2, 3]) == [[], [], [], [], [2]])
        // 40 has 1/40, below 10 and 20 with 1/10 and 1/20: it is its own victim and raises the floor to 1/40.
        #expect(victims(.gdsf, capacity: 50, [10, 20, 40], size: { Int($0) }) == [[], [], [40]])
        // Each one that is refused raises the floor, until what came later outranks what was used twice long ago.
        let requests: [UInt32] = [1, 1, 2, 3, 4, 5]
        #expect(victims(.gdsf, capacity: 1, requests) == [[], [], [2], [1], [3], [4]])
    }

    @Test("S3-FIFO: an entry used twice in the small queue moves on, one that returns goes to the main queue")
    func s3fifo() {
        // 20 entries, 2 of them in the small queue; 3 to 20 fill the main queue while nothing was evicted.
        let fill = Array(1...20 as ClosedRange<UInt32>)
        // 1 was used twice and moves to the main queue, which is then too large by one: 3, unused there, leaves next.
        let first = victims(.s3fifo, capacity: 20, fill + [1, 1, 21, 22])
        #expect(first.suffix(2) == [[2], [3]])
        // 1 left the small queue and comes back: it goes to the main queue, and 2 leaves the small one for it.
        let second = victims(.s3fifo, capacity: 20, fill + [21, 1, 22, 23])
        #expect(second.suffix(4) == [[1], [2], [3], [21]])
        // Not smaller than the small queue: not admitted.
        #expect(victims(.s3fifo, capacity: 20, [1, 2], size: { Int($0) }) == [[], [2]])
    }

    @Test("W-TinyLFU: an entry that leaves the window stays only if it was requested more often")
    func wtinylfu() {
        // The window has room for 1 of 100: 1 to 99 move on. 100 was asked for no more often than 1 and leaves.
        let fill = Array(1...100 as ClosedRange<UInt32>)
        let once = victims(.wtinylfu, capacity: 100, fill + [101, 102])
        #expect(once.suffix(2) == [[100], [101]])
        // Used in the window, 100 was asked for twice, and 1 leaves for it.
        let twice = victims(.wtinylfu, capacity: 100, fill + [100, 101, 102])
        #expect(twice.suffix(3) == [[], [1], [101]])
        // As large as the capacity is not too large.
        #expect(victims(.wtinylfu, capacity: 100, [100, 101], size: { Int($0) }) == [[], [101]])
    }

    @Test("SIEVE states at least the 13 bytes that it has for each entry")
    func sieveMemory() {
        var policy = SievePolicy(capacity: 1_000)
        var victims: [UInt32] = []
        for slot in 0..<1_000 as Range<UInt32> { policy.insert(slot, key: UInt64(slot), size: 1, victims: &victims) }
        #expect(victims.isEmpty)
        #expect(policy.metadataBytes >= 13 * 1_000)
    }
}
