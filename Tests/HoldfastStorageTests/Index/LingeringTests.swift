// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Testing

@testable import HoldfastStorage

@Suite("Keys that linger after failed writes")
struct LingeringTests {
    @Test("Nothing lingers at first, and a noted key lingers until it is forgotten")
    func notedAndForgotten() {
        var lingering = Lingering()
        #expect(lingering.isEmpty)
        #expect(!lingering.contains(7))
        lingering.note(7)
        #expect(lingering.contains(7))
        #expect(!lingering.contains(8))
        lingering.forget(7)
        #expect(!lingering.contains(7))
        #expect(lingering.isEmpty)
    }

    @Test("64 keys are tracked individually; with one more every key lingers until all is forgotten")
    func bound() {
        var lingering = Lingering()
        for key in 0..<64 { lingering.note(UInt64(key)) }
        lingering.note(63)
        #expect(!lingering.isOverfull)
        #expect(!lingering.contains(64))
        lingering.note(64)
        #expect(lingering.isOverfull)
        #expect(lingering.contains(64))
        #expect(lingering.contains(1_000))
        // A key turned away can no longer be told from the others.
        for key in 0..<65 { lingering.forget(UInt64(key)) }
        #expect(lingering.contains(64))
        #expect(!lingering.isEmpty)
        lingering.removeAll()
        #expect(lingering.isEmpty)
        #expect(!lingering.contains(64))
    }
}
