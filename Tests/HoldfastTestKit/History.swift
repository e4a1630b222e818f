// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

private import Foundation
package import HoldfastTesting

/// How long random histories are, and with which seed they begin.
///
/// `HOLDFAST_HISTORY_STEPS` is the number of steps of all histories together (100,000), `HOLDFAST_HISTORY_SEED` the seed (1). Each
/// fault names the seed, and with the same steps the same seed gives the same histories.
package enum History {
    package static let steps = max(1_000, number("HOLDFAST_HISTORY_STEPS") ?? 100_000)
    package static let seed = UInt64(clamping: number("HOLDFAST_HISTORY_SEED") ?? 1)

    /// A share of all steps in hundredths, divided among so many histories.
    package static func steps(percent: Int, among histories: Int) -> Int { steps / 100 * percent / histories }

    /// The chance of one history; the same name gives the same numbers for the same seed.
    package static func generator(_ name: String) -> SeededGenerator {
        var mixed = seed
        for byte in name.utf8 { mixed = (mixed ^ UInt64(byte)) &* 0x100_0000_01B3 }
        return SeededGenerator(seed: mixed)
    }

    private static func number(_ name: String) -> Int? {
        ProcessInfo.processInfo.environment[name].flatMap { Int($0) }
    }
}

/// What of a history was not as it should be: the first few faults, each with its step.
package struct HistoryFaults {
    package private(set) var all: [String] = []

    package init() {}

    package mutating func check(_ isRight: Bool, at step: Int, _ what: @autoclosure () -> String) {
        if !isRight, all.count < 5 { all.append("step \(step): \(what())") }
    }
}

extension SeededGenerator {
    /// A number from 0 to `most` of any order of magnitude, and often one of the two ends.
    package mutating func magnitude(upTo most: Int) -> Int {
        switch UInt8.random(in: 0..<10, using: &self) {
        case 0: return 0
        case 1: return most
        default:
            let bits = Int.random(in: 0...max(0, Int.bitWidth - max(0, most).leadingZeroBitCount), using: &self)
            return min(max(0, most), Int(truncatingIfNeeded: next() & (1 << UInt64(bits) &- 1)))
        }
    }

    /// Whether what happens once in so many times happens.
    package mutating func once(in count: Int) -> Bool { Int.random(in: 0..<count, using: &self) == 0 }
}
