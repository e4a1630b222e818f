// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastTesting
import Testing

@testable import HoldfastStorage

@Suite("Useless entries, in order", .timeLimit(.minutes(20)))
struct ExpiryQueueTests {
    @Test("The queue agrees with a search over all slots", arguments: [1, 2, 3] as [UInt64])
    func useless(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var queue = ExpiryQueue()
        var model: [Int: Int64] = [:]
        for _ in 0..<5_000 {
            let slot = Int.random(in: 0..<30, using: &generator)
            switch Int.random(in: 0..<4, using: &generator) {
            case 0...1:
                let instant = Int64.random(in: 0..<100, using: &generator)
                queue.set(slot, instant: .at(instant))
                model[slot] = instant
            case 2:
                if Bool.random(using: &generator) {
                    queue.set(slot, instant: .distantFuture)
                } else {
                    queue.remove(slot)
                }
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
