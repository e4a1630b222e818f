// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Testing

@testable import Harness

@Suite("Samples and rounds")
struct SampleTests {
    @Test(
        "The median is the middle value, or the mean of the two in the middle",
        arguments: [([], nil), ([4], 4), ([9, 1], 5), ([3, 1, 2], 2), ([10, 1, 3, 2], 2.5), ([5, 5, 5], 5)]
            as [([Double], Double?)]
    )
    func median(_ figures: [Double], _ expected: Double?) {
        #expect(Sample(figures).median == expected)
    }

    @Test("Invalid numbers are left out")
    func noNumbers() {
        let sample = Sample([.nan, 2, .infinity, 1, 3])
        #expect(sample.sorted == [1, 2, 3])
        #expect(sample.best == 1)
    }

    @Test("The spread is the range divided by the median")
    func spread() {
        #expect(Sample([8, 10, 14]).spread == 0.6)
        #expect(Sample([8]).spread == 0)
        #expect(Sample([]).spread == 0)
        #expect(Sample([0, 0]).spread == 0)
    }

    @Test("Each subject runs once a round, and each round begins with another one")
    func rounds() {
        let orders = Rounds.orders(subjects: 3, rounds: 4)
        #expect(orders == [[0, 1, 2], [1, 2, 0], [2, 0, 1], [0, 1, 2]])
        #expect(Rounds.orders(subjects: 0, rounds: 2) == [[], []])
        #expect(Rounds.orders(subjects: 2, rounds: -1).isEmpty)
    }
}
