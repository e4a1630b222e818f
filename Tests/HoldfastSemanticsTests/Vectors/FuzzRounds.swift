// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Testing

/// How many rounds a property test runs: a few hundred or thousand by default, so that the whole suite stays quick.
///
/// `HOLDFAST_FUZZ_FACTOR` multiplies them and `HOLDFAST_FUZZ_SEED` replaces the first seed, for long runs on fresh
/// input; a failure prints its seed, and the same seed and factor repeat it.
enum FuzzRounds {
    static func of(_ usual: Int) -> Int {
        usual * factor
    }

    /// The seeds of ``propertySeeds``, the first of them replaced where the environment asks for it.
    static let seeds: [UInt64] = {
        guard let seed = number("HOLDFAST_FUZZ_SEED") else { return propertySeeds }
        return [UInt64(seed)] + propertySeeds.dropFirst()
    }()

    private static let factor = min(number("HOLDFAST_FUZZ_FACTOR") ?? 1, 1_000_000)

    private static func number(_ name: String) -> Int? {
        guard let number = ProcessInfo.processInfo.environment[name].flatMap({ Int($0) }), number > 0 else {
            return nil
        }
        return number
    }
}

@Suite struct FuzzRoundsTests {
    @Test func roundsAreSome() {
        #expect(FuzzRounds.of(3) >= 3)
        #expect(FuzzRounds.seeds.count == propertySeeds.count)
    }
}
