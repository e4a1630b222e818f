// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastTesting
import Testing

@testable import HoldfastStorage

@Suite("Headroom")
struct HeadroomTests {
    @Test("It is the maximum that was in flight, at most an eighth of the capacity")
    func peak() {
        var headroom = Headroom(capacity: 8_000)
        #expect(headroom.bytes == 0)
        for (bytes, expected) in [(10, 10), (300, 300), (20, 300), (1_000, 1_000), (5_000, 1_000)] {
            headroom.note(inFlight: bytes)
            #expect(headroom.bytes == expected)
        }
    }

    @Test("A peak is forgotten after one to two windows of started entries")
    func decay() {
        var headroom = Headroom(capacity: 8_000)
        headroom.note(inFlight: 900)
        var begun = 0
        while headroom.bytes == 900 {
            headroom.noteBegin(inFlight: 0)
            headroom.note(inFlight: 50)
            begun += 1
            if begun > 10_000 { break }
        }
        #expect((Headroom.window...(2 * Headroom.window)).contains(begun))
        #expect(headroom.bytes == 50)
    }

    @Test("Bytes in flight while windows change are remembered")
    func carried() {
        var headroom = Headroom(capacity: 8_000)
        for _ in 0..<(5 * Headroom.window) {
            headroom.noteBegin(inFlight: 700)
            if headroom.bytes > 0 { #expect(headroom.bytes == 700) }
        }
        #expect(headroom.bytes == 700)
    }

    @Test("Useless capacities give no headroom", arguments: [0, -1, 7, .min])
    func tiny(capacity: Int) {
        var headroom = Headroom(capacity: capacity)
        headroom.note(inFlight: .max)
        #expect(headroom.bytes == 0)
    }
}
