// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastTesting
import Testing

@testable import HoldfastStorage

@Suite("Eviction order", .timeLimit(.minutes(5)))
struct EvictionOrderTests {
    @Test("The recency list does what an array does", arguments: [1, 2, 3] as [UInt64])
    func recency(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var list = RecencyList()
        var model: [Int] = []
        for _ in 0..<3_000 {
            let slot = Int.random(in: 0..<20, using: &generator)
            model.removeAll { $0 == slot }
            if Int.random(in: 0..<3, using: &generator) > 0 {
                list.touch(slot)
                model.append(slot)
            } else {
                list.remove(slot)
            }
            #expect(list.last == model.first)
            #expect(list.contains(slot) == model.contains(slot))
        }
    }

    @Test("The queue gives what a search over all slots gives", arguments: [1, 2, 3] as [UInt64])
    func useless(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var queue = UselessQueue()
        var model: [Int: Int64] = [:]
        for _ in 0..<5_000 {
            let slot = Int.random(in: 0..<30, using: &generator)
            switch Int.random(in: 0..<4, using: &generator) {
            case 0...1:
                let instant = Int64.random(in: 0..<100, using: &generator)
                queue.set(slot, .at(instant))
                model[slot] = instant
            case 2:
                if Bool.random(using: &generator) { queue.set(slot, .distantFuture) } else { queue.remove(slot) }
                model[slot] = nil
            default:
                break
            }
            let now = Int64.random(in: 0..<110, using: &generator)
            let found = queue.first(before: .at(now))
            let least = model.values.filter { $0 < now }.min()
            #expect(found.flatMap { model[$0] } == least, "seed \(seed)")
        }
    }
}
