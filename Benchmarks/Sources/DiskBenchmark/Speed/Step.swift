// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Harness
internal import HoldfastStorage

/// One operation of a turn, created before the turn so that creating its key is not timed.
struct Step: Sendable {
    /// The entry's number.
    let entry: Int
    /// The entry's key, for subjects that use keys.
    let key: StoreKey
    /// Whether this is a put; otherwise it is a get.
    let isPut: Bool

    init(_ workload: Workload, _ entry: Int, isPut: Bool) {
        self.entry = entry
        self.isPut = isPut
        key = StoreKey(workload.key(entry))
    }

    /// Gets of random entries.
    static func gets(_ workload: Workload, _ count: Int, population: Int, seed: UInt64) -> [Step] {
        var numbers = SeededNumbers(seed: seed)
        return (0..<count).map { _ in
            Step(workload, Int.random(in: 0..<population, using: &numbers), isPut: false)
        }
    }

    /// Puts of these entries, in order.
    static func puts(_ workload: Workload, _ entries: Range<Int>) -> [Step] {
        entries.map { Step(workload, $0, isPut: true) }
    }

    /// Nine gets for each put, of random existing entries.
    static func mixed(_ workload: Workload, _ count: Int, population: Int, seed: UInt64) -> [Step] {
        var numbers = SeededNumbers(seed: seed)
        return (0..<count).map { _ in
            let entry = Int.random(in: 0..<population, using: &numbers)
            return Step(workload, entry, isPut: Int.random(in: 0..<10, using: &numbers) == 0)
        }
    }
}
