// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Testing

@testable import Harness

@Suite("Bytes claimed and bytes moved")
struct TransferTallyTests {
    private func tally(read: Int, written: Int, gets: Int = 10, puts: Int = 10) -> TransferTally {
        var tally = TransferTally()
        tally.add(.init(read: read / 2, written: written / 2), gets: gets / 2, puts: puts / 2)
        tally.add(
            .init(read: read - read / 2, written: written - written / 2),
            gets: gets - gets / 2,
            puts: puts - puts / 2
        )
        return tally
    }

    @Test(
        "Three quarters of the delivered bytes must have been read, and all stored bytes written",
        arguments: [
            (1_000, 1_000, true), (750, 1_000, true), (749, 1_000, false), (1_000, 999, false), (0, 5_000, false),
            (5_000, 0, false),
        ]
    )
    func judged(_ read: Int, _ written: Int, _ isFine: Bool) {
        let finding = tally(read: read, written: written).finding(name: "x", size: 100, readsByCalls: true)
        #expect((finding == nil) == isFine)
    }

    @Test("Reads of a mapped file are not checked, its writes are", arguments: [(1_000, true), (999, false)])
    func mapped(_ written: Int, _ isFine: Bool) {
        let finding = tally(read: 0, written: written).finding(name: "x", size: 100, readsByCalls: false)
        #expect((finding == nil) == isFine)
    }

    @Test("Without counters nothing is checked")
    func uncounted() {
        #expect(TransferTally().finding(name: "x", size: 100, readsByCalls: true) == nil)
    }
}
