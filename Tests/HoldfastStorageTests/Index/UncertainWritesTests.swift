// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Testing

@testable import HoldfastStorage

@Suite("Keys that linger after failed writes")
struct UncertainWritesTests {
    @Test("Nothing lingers at first, and a noted key lingers until it is forgotten")
    func notedAndForgotten() {
        var uncertain = UncertainWrites()
        #expect(uncertain.isEmpty)
        #expect(!uncertain.contains(7))
        uncertain.note(7)
        #expect(uncertain.contains(7))
        #expect(!uncertain.contains(8))
        uncertain.forget(7)
        #expect(!uncertain.contains(7))
        #expect(uncertain.isEmpty)
    }

    @Test("64 keys are tracked individually; with one more every key lingers until all is forgotten")
    func bound() {
        var uncertain = UncertainWrites()
        for key in 0..<64 { uncertain.note(UInt64(key)) }
        uncertain.note(63)
        #expect(!uncertain.isOverfull)
        #expect(!uncertain.contains(64))
        uncertain.note(64)
        #expect(uncertain.isOverfull)
        #expect(uncertain.contains(64))
        #expect(uncertain.contains(1_000))
        // A key turned away can no longer be told from the others.
        for key in 0..<65 { uncertain.forget(UInt64(key)) }
        #expect(uncertain.contains(64))
        #expect(!uncertain.isEmpty)
        uncertain.removeAll()
        #expect(uncertain.isEmpty)
        #expect(!uncertain.contains(64))
    }
}
