// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastSemantics
import HoldfastTesting
import Synchronization
import Testing

@testable import Holdfast

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("The order of a load")
struct LoadStateTests {
    private static func texts(_ deliveries: [LoadDelivery]) -> [String] {
        deliveries.map { delivery in
            switch delivery {
            case .response: "response"
            case .data(let data): String(decoding: data, as: UTF8.self)
            case .end: "end"
            case .failure: "failure"
            }
        }
    }

    @Test(
        "Starts, pauses and stops in any order: in sequence, nothing while paused or after the end",
        arguments: [3, 4, 5]
    )
    func random(_ seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        for _ in 0..<400 {
            var state = LoadState()
            var begins = 0
            var isPaused = false
            var isStopped = false
            var added = 0
            var got: [String] = []
            for _ in 0..<Int.random(in: 1...30, using: &generator) {
                switch Int.random(in: 0..<12, using: &generator) {
                case 0...3:
                    isPaused = false
                    switch state.start() {
                    case .begin: begins += 1
                    case .deliver(let deliveries):
                        #expect(!isStopped || deliveries.isEmpty)
                        got += Self.texts(deliveries)
                    }
                case 4...8:
                    let isAsked = state.add([.data(Data("\(added)".utf8))])
                    #expect(!isAsked || (begins == 1 && !isPaused && !isStopped))
                    if begins == 1, !isStopped, got.last != "end" { added += 1 }
                case 9:
                    if begins == 1, !isStopped { _ = state.add([.end]) }
                case 10:
                    isPaused = true
                    state.pause()
                default:
                    if Bool.random(using: &generator) {
                        isStopped = true
                        state.stop()
                    }
                }
                let taken = state.take()
                if isPaused || isStopped { #expect(taken.isEmpty) }
                got += Self.texts(taken)
            }
            #expect(begins <= 1)
            let numbers = got.compactMap { Int($0) }
            #expect(numbers == Array(numbers.indices), "seed \(seed)")
        }
    }

    @Test("Nothing comes after the last delivery")
    func last() {
        var state = LoadState()
        guard case .begin = state.start() else {
            Issue.record("did not begin")
            return
        }
        let isAsked = state.add([.data(Data("a".utf8)), .end])
        #expect(isAsked)
        guard case .deliver(let deliveries) = state.start() else {
            Issue.record("began twice")
            return
        }
        #expect(Self.texts(deliveries) == ["a", "end"])
        #expect(state.isOver)
        let isAskedAgain = state.add([.end])
        #expect(!isAskedAgain)
        let rest = state.take()
        #expect(rest.isEmpty)
    }
}
