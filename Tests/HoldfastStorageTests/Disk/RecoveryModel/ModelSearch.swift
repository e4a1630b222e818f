// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// A breadth-first search over all histories of a scenario.
struct ModelSearch {
    struct Outcome {
        var states = 0
        var depth = 0
        /// The shortest history that breaks a promise, and which.
        var counterexample: [String]?
        /// Whether every history within the bounds was looked at.
        var isExhausted = false
    }

    let scenario: ModelScenario
    /// States after which the search gives up.
    var limit = 2_000_000

    /// Looks at each reopened state.
    var onReopened: (ModelState) -> Void = { _ in }

    private struct Step {
        var name: String
        var parent: Int
    }

    func run() -> Outcome {
        var initial = ModelState()
        initial.omits = scenario.omits
        var outcome = Outcome()
        var seen: Set<ModelState> = [initial]
        var steps = [Step(name: "open", parent: -1)]
        var frontier = [(state: initial, step: 0)]
        while !frontier.isEmpty, outcome.depth < scenario.depth {
            outcome.depth += 1
            var next: [(state: ModelState, step: Int)] = []
            for (state, step) in frontier {
                for (name, reached) in scenario.successors(of: state) {
                    var reached = reached
                    let complaint = reached.complaint
                    if complaint == nil, name.hasPrefix("crash") {
                        onReopened(reached)
                        reached.settle()
                    }
                    guard complaint != nil || seen.insert(reached).inserted else { continue }
                    steps.append(Step(name: name, parent: step))
                    if let complaint {
                        outcome.counterexample = history(steps, steps.count - 1) + [complaint]
                        outcome.states = seen.count
                        return outcome
                    }
                    next.append((reached, steps.count - 1))
                }
                if seen.count > limit {
                    outcome.states = seen.count
                    return outcome
                }
            }
            frontier = next
        }
        outcome.isExhausted = true
        outcome.states = seen.count
        return outcome
    }

    private func history(_ steps: [Step], _ last: Int) -> [String] {
        var names: [String] = []
        var index = last
        while index >= 0 {
            names.append(steps[index].name)
            index = steps[index].parent
        }
        return names.reversed()
    }
}
