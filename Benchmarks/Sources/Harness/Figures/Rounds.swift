// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// In which order subjects take their turns, so that what the machine does meanwhile meets all alike.
public enum Rounds {
    /// The order of each round: one later subject begins each time, so none always runs after the same neighbour's mess
    /// at the start of a round.
    ///
    /// - Returns: `rounds` orders of the numbers from 0 to `subjects - 1`.
    public static func orders(subjects: Int, rounds: Int) -> [[Int]] {
        guard subjects > 0 else { return Array(repeating: [], count: max(0, rounds)) }
        return (0..<max(0, rounds)).map { round in
            (0..<subjects).map { ($0 + round) % subjects }
        }
    }
}
