// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Testing

@testable import HoldfastStorage

@Suite("Keys that linger after failed writes")
struct UncertainWritesTests {
    @Test("64 keys are tracked individually; with one more every key lingers until all is forgotten")
    func bound() {
        var uncertain = UncertainWrites()
        #expect(!uncertain.contains(63))
        for key in 0..<64 { uncertain.note(UInt64(key)) }
        #expect(uncertain.contains(0) && uncertain.contains(63))
        uncertain.note(63)
        #expect(!uncertain.isOverfull)
        #expect(!uncertain.contains(64))
        uncertain.note(64)
        #expect(uncertain.isOverfull)
        #expect(uncertain.contains(64))
        #expect(uncertain.contains(1_000))
        uncertain.removeAll()
        #expect(!uncertain.isOverfull)
        #expect(!uncertain.contains(63))
        #expect(!uncertain.contains(64))
    }
}
