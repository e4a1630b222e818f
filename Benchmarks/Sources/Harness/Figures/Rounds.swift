// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The order in which subjects take turns, so that disturbances of the machine affect all of them equally.
public enum Rounds {
    /// The order of each round. Each round begins with the next subject, so that no subject always follows the same one at the
    /// start of a round.
    ///
    /// - Returns: `rounds` orders of the numbers from 0 to `subjects - 1`.
    public static func orders(subjects: Int, rounds: Int) -> [[Int]] {
        guard subjects > 0 else { return Array(repeating: [], count: max(0, rounds)) }
        return (0..<max(0, rounds)).map { round in
            (0..<subjects).map { ($0 + round) % subjects }
        }
    }
}
