// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import HoldfastTesting
import Testing

@testable import HoldfastSimulation
@testable import HoldfastStorage

@Suite("Ranks and ghosts", .timeLimit(.minutes(20)))
struct RankHeapTests {
    @Test("The heap agrees with a search over all slots", arguments: [1, 2, 3] as [UInt64])
    func heap(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var heap = RankHeap()
        var model: [UInt32: UInt64] = [:]
        for step in 0..<4_000 {
            let slot = UInt32.random(in: 0..<60, using: &generator)
            if Int.random(in: 0..<3, using: &generator) > 0 {
                let rank = UInt64.random(in: 0..<1_000, using: &generator) * 64 + UInt64(slot)
                heap.set(slot, rank: rank)
                model[slot] = rank
            } else if model.removeValue(forKey: slot) != nil {
                heap.remove(slot)
            }
            if step % 500 == 0 {
                heap.replaceRanks { $0 / 2 }
                model = model.mapValues { $0 / 2 }
            }
            #expect(heap.first.map { heap[$0] } == model.values.min(), "seed \(seed), step \(step)")
            #expect(heap.contains(slot) == (model[slot] != nil))
        }
    }

    @Test("A ghost is known until the limit's bytes left after it, and is taken once")
    func ghosts() {
        var ghosts = GhostQueue(limit: 90)
        for mark in 1...20 as ClosedRange<UInt32> { ghosts.note(mark, size: 10, entries: 100) }
        #expect((1...11).allSatisfy { !ghosts.takes($0) })
        #expect((12...20).allSatisfy { ghosts.takes($0) })
        #expect((1...20).allSatisfy { !ghosts.takes($0) })
    }

    @Test("Ghosts stay forgotten when their ages wrap")
    func wrap() {
        var ghosts = GhostQueue(limit: 1_000)
        // Spread over the table, so that the first one is not overwritten by the others.
        let marks = (0..<10 as Range<UInt64>).map { GhostQueue.mark(SplitMix64.mixed($0)) }
        ghosts.note(marks[0], size: 10, entries: 5_000)
        for step in 0..<70_000 {
            ghosts.note(marks[1 + step % 9], size: 1, entries: 5_000)
            if step > 60_000, ghosts.takes(marks[0]) { Issue.record("known again at \(step)") }
        }
    }
}
