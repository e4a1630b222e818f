// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import Testing

@Suite("Retrying: gates")
struct RetryGatesTests {
    @Test("A gate stays closed until the very instant that was asked for, and opens by itself")
    func opens() {
        var gates = RetryGates()
        gates.close(for: 1, asked: .seconds(10), now: .seconds(5))
        #expect(gates.closed(for: 1, now: .milliseconds(14_999))?.opens == .seconds(15))
        #expect(gates.closed(for: 1, now: .seconds(15)) == nil)
        #expect(gates.isEmpty)
    }

    @Test("A gate is closed for one credential and for no other")
    func credentials() {
        var gates = RetryGates()
        gates.close(for: 1, asked: .seconds(10), now: .zero)
        #expect(gates.closed(for: 2, now: .zero) == nil)
        #expect(gates.closed(for: 1, now: .zero) != nil)
    }

    @Test("A later answer that asks for less does not open the gate earlier; one that asks for more keeps it closed")
    func longest() {
        var gates = RetryGates()
        gates.close(for: 1, asked: .seconds(10), now: .zero)
        gates.close(for: 1, asked: .seconds(3), now: .seconds(1))
        #expect(gates.lastOpening(now: .seconds(1)) == .seconds(10))
        gates.close(for: 1, asked: .seconds(30), now: .seconds(1))
        #expect(gates.lastOpening(now: .seconds(1)) == .seconds(31))
    }

    @Test("Who waited comes back spread over half of the pause, 5 s at most", arguments: [(4, 2), (60, 5)])
    func spread(asked: Int, spread: Int) {
        var gates = RetryGates()
        gates.close(for: 1, asked: .seconds(asked), now: .zero)
        #expect(gates.closed(for: 1, now: .zero)?.spread == .seconds(spread))
    }

    @Test("The gates are bounded in number and in time, whatever servers ask for")
    func bounds() {
        var gates = RetryGates()
        gates.close(for: 0, asked: .seconds(4_000_000_000), now: .zero)
        #expect(gates.lastOpening(now: .zero) == RetryGates.longestPause)
        for credential in 1...RetryGates.limit { gates.close(for: credential, asked: .seconds(credential), now: .zero) }
        // The gate that would have opened first made room.
        #expect(gates.closed(for: 1, now: .zero) == nil)
        #expect(gates.closed(for: 0, now: .zero) != nil)
    }
}
