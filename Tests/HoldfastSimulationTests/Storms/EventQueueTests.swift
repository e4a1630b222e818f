// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Testing

@testable import HoldfastSimulation

@Suite("Event queue")
struct EventQueueTests {
    @Test(
        "Events come out by time, then in the order of insertion, as from a sorted list",
        arguments: 1...20
    )
    func order(_ seed: UInt64) {
        var numbers = SimulationNumbers(seed: seed)
        var queue = EventQueue<Int>()
        var expected: [(time: Duration, id: Int)] = []
        for id in 0..<200 {
            let time = Duration.milliseconds(Int(numbers.uniform() * 40))
            queue.add(id, at: time)
            expected.append((time, id))
            if numbers.uniform() < 0.3, let first = expected.indices.min(by: { earlier($0, $1, expected) }) {
                let (time, id) = expected.remove(at: first)
                #expect(queue.next?.time == time && queue.removeNext()?.payload == id, "seed \(seed)")
            }
        }
        for (time, id) in expected.sorted(by: { ($0.time, $0.id) < ($1.time, $1.id) }) {
            let next = queue.removeNext()
            #expect(next?.time == time && next?.payload == id, "seed \(seed)")
        }
        #expect(queue.isEmpty && queue.next == nil && queue.removeNext() == nil)
    }

    private func earlier(_ left: Int, _ right: Int, _ list: [(time: Duration, id: Int)]) -> Bool {
        (list[left].time, list[left].id) < (list[right].time, list[right].id)
    }
}
