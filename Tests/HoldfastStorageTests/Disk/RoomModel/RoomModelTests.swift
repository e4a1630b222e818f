// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastTesting
import Testing

@Suite("There is room in every short history", .timeLimit(.minutes(20)))
struct RoomModelTests {
    private struct Outcome {
        var states = 0
        /// The shortest history that breaks a promise, and which.
        var counterexample: [String]?
    }

    /// Every history of so many steps on a store that is full to its limit. Callers are alike and a step is one caller's, so that any
    /// three callers or more are among them.
    private static func search(_ rules: RoomModel.Rules, depth: Int, limit: Int) -> Outcome {
        var start = RoomModel(rules)
        while start.reclaim == nil { _ = start.put() }
        var outcome = Outcome()
        var seen: Set<RoomModel> = [start.canonical]
        var steps = [(name: "full", parent: -1)]
        var frontier = [(state: start.canonical, step: 0)]
        for _ in 0..<depth {
            var reached: [(state: RoomModel, step: Int)] = []
            for (state, step) in frontier {
                for name in RoomModel.steps {
                    var next = state
                    next.step(name)
                    next = next.canonical
                    guard seen.insert(next).inserted else { continue }
                    steps.append((name, step))
                    if let complaint = next.complaint {
                        var names = [complaint]
                        var index = steps.count - 1
                        while index >= 0 {
                            names.append(steps[index].name)
                            index = steps[index].parent
                        }
                        outcome.counterexample = names.reversed()
                        outcome.states = seen.count
                        return outcome
                    }
                    reached.append((next, steps.count - 1))
                }
                if seen.count > limit { break }
            }
            frontier = reached
        }
        outcome.states = seen.count
        return outcome
    }

    /// What is wrong after a random history, and after how many steps.
    private static func walk(_ rules: RoomModel.Rules, seed: UInt64, steps: Int) -> (complaint: String, steps: Int)? {
        var generator = SeededGenerator(seed: seed)
        var state = RoomModel(rules)
        for step in 0..<steps {
            // A reclaim goes on between the steps of callers, or they would wait for ever.
            let name = ["put", "reclaim", RoomModel.steps.randomElement(using: &generator) ?? "put"]
                .randomElement(using: &generator)
            state.step(name ?? "put")
            state = state.canonical
            if step % 8 == 0, let complaint = state.complaint { return (complaint, step) }
        }
        return nil
    }

    @Test("With the reserve a put always finds room, and every reclaim ends")
    func holds() {
        let outcome = Self.search(.reserve, depth: 12, limit: 2_000_000)
        print("room model:", outcome.states, "states")
        #expect(outcome.counterexample == nil)
        #expect(outcome.states > 1_000)
    }

    @Test("The same holds for long random histories", arguments: 0..<60 as Range<UInt64>)
    func holdsLong(seed: UInt64) {
        let found = Self.walk(.reserve, seed: seed, steps: 400)
        #expect(found == nil, "seed \(seed): \(found.map { "\($0)" } ?? "")")
    }

    @Test("The rules of 0.1.0 end in a store that accepts nothing more")
    func oneKeptBack() {
        let found = (0..<60 as Range<UInt64>).compactMap { Self.walk(.oneKeptBack, seed: $0, steps: 400) }
        print("room model: 0.1.0,", found.count, "of 60 histories, the first after", found.first?.steps ?? 0, "steps")
        #expect(found.first?.complaint == "a put finds no room")
    }
}
