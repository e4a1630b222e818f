// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastTesting
import Testing

@testable import Holdfast

@Suite("A value behind one reference", .timeLimit(.minutes(20)))
struct CopyOnWriteTests {
    private struct Parts: Sendable, Equatable {
        var number = 0
        var words: [String] = []
        var check: Int { number + words.count }
    }

    @Test("A copy has the value, and changes to one do not affect the other")
    func copies() {
        let first = CopyOnWrite(Parts(number: 1, words: ["a"]))
        var second = first
        var third = second
        #expect(third.value == Parts(number: 1, words: ["a"]))
        second.value.number = 2
        third.value.words.append("b")
        #expect(first.value == Parts(number: 1, words: ["a"]))
        #expect(second.value == Parts(number: 2, words: ["a"]))
        #expect(third.value == Parts(number: 1, words: ["a", "b"]))
        second.value = Parts(number: 9)
        #expect(first.value.number == 1)
        #expect(second.value == Parts(number: 9))
    }

    @Test("Copies are identical until one is changed, even to an equal value; separate values never are")
    func same() {
        let first = CopyOnWrite(Parts())
        var second = first
        #expect(first.isSame(as: second))
        #expect(second.isSame(as: first))
        #expect(!first.isSame(as: CopyOnWrite(Parts())))
        second.value.number = 0
        #expect(!first.isSame(as: second))
        #expect(first.value == second.value)
        let third = second
        second.value.number = 3
        #expect(!third.isSame(as: second))
    }

    @Test("The only copy is changed in place, and stays identical to itself")
    func changedInPlace() {
        var only = CopyOnWrite(Parts(words: Array(repeating: "a", count: 100)))
        let before = only.value.words.withUnsafeBufferPointer { $0.baseAddress }
        only.value.words[0] = "b"
        only.value.number = 4
        #expect(only.value.words.withUnsafeBufferPointer { $0.baseAddress } == before)
        #expect(only.isSame(as: only))
    }

    @Test("A change by a throwing function affects this copy alone, as far as it came")
    func throwing() {
        func change(_ parts: inout Parts) throws {
            parts.number = 7
            throw Refused()
        }
        let first = CopyOnWrite(Parts(number: 1))
        var second = first
        #expect(throws: Refused.self) { try change(&second.value) }
        #expect(first.value.number == 1)
        #expect(second.value.number == 7)
    }

    @Test(
        "Many tasks change copies of one value and pass them on: each sees its own changes",
        arguments: 1...4
    )
    func stress(_ seed: Int) async {
        let origin = CopyOnWrite(Parts(number: 0, words: ["origin"]))
        // Where copies change hands, so that references come and go on several threads.
        let exchange = SharedValue(origin)
        let wrong = await withTaskGroup(of: Int.self) { group in
            for task in 0..<8 {
                group.addTask {
                    var random = SeededGenerator(seed: UInt64(seed * 100 + task))
                    var own = origin
                    var expected = own.value
                    var wrong = 0
                    for step in 0..<20_000 {
                        switch Int.random(in: 0..<5, using: &random) {
                        case 0:
                            own.value.number += 1
                            expected.number += 1
                        case 1:
                            own.value.words = ["\(task)", "\(step)"]
                            expected.words = ["\(task)", "\(step)"]
                        case 2: exchange.set(own)
                        case 3:
                            own = exchange.value
                            // Taken from another task, which may go on changing its own copy.
                            expected = own.value
                        default:
                            own.value.words.append("x")
                            expected.words.append("x")
                        }
                        if own.value.words.count > 50 { (own.value.words, expected.words) = ([], []) }
                        if own.value != expected || own.value.check != expected.check { wrong += 1 }
                    }
                    return wrong
                }
            }
            return await group.reduce(0, +)
        }
        #expect(wrong == 0)
        #expect(origin.value == Parts(number: 0, words: ["origin"]))
    }
}
