// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Testing

@testable import Harness

@Suite("What callgrind counted")
struct CallgrindRunTests {
    @Test("The total of a dump")
    func total() {
        #expect(CallgrindRun.total(in: "events: Ir\nfn=(1)\n12 500\n\ntotals: 81234\n") == 81_234)
        #expect(CallgrindRun.total(in: "events: Ir\n") == nil)
    }

    @Test("Totals and names are joined in order, and other lines are ignored")
    func joined() throws {
        let found = try CallgrindRun.perCall(
            "empty/holdfast 500\na line of other words\nempty/direct 10\n",
            [81_000, 50]
        )
        #expect(found == ["empty/holdfast": 162, "empty/direct": 5])
    }

    @Test("A missing total is an error that says so")
    func missing() {
        let expected = CallgrindRun.Failure(reason: "callgrind counted 1 pieces of work, but the program printed 2")
        #expect(throws: expected) { try CallgrindRun.perCall("a 1\nb 2\n", [5]) }
        #expect(throws: CallgrindRun.Failure.self) { try CallgrindRun.perCall("", []) }
    }
}
