// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastSemantics
import HoldfastTesting
import Testing

@testable import Holdfast

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("OriginTable", .timeLimit(.minutes(20)))
struct OriginTableTests {
    private final class Cell: Sendable {}

    private func origin(_ number: Int) -> OriginText {
        OriginText(.get("http://h\(number).example/"))
    }

    @Test("An origin keeps its cell; the number of origins is bounded, and the longest unused go first")
    func bound() {
        let table = OriginTable(capacity: 16) { _ in Cell() }
        func cell(_ number: Int, at seconds: Int) -> Cell {
            table.cell(of: origin(number), now: MonotonicInstant(sinceOrigin: .seconds(seconds)))
        }
        let first = cell(0, at: 0)
        for number in 1..<1000 {
            _ = cell(number, at: number)
            #expect(cell(0, at: number) === first)
        }
        #expect(table.count <= 16)
        _ = cell(998, at: 1000)
        #expect(table.count <= 16)
    }

    @Test("A busy cell outlives idle ones")
    func busy() {
        let busy = Cell()
        let table = OriginTable(capacity: 4, isIdle: { cell, _ in cell !== busy }) { now in
            now.sinceOrigin == .zero ? busy : Cell()
        }
        for number in 0..<100 {
            _ = table.cell(of: origin(number), now: MonotonicInstant(sinceOrigin: .seconds(number)))
        }
        #expect(table.cell(of: origin(0), now: MonotonicInstant(sinceOrigin: .seconds(100))) === busy)
    }

    @Test("No busy cell is removed up to four times the capacity; beyond that the longest unused are")
    func allBusy() {
        let table = OriginTable(capacity: 16, isIdle: { _, _ in false }) { _ in Cell() }
        let cells = (0..<64).map { table.cell(of: origin($0), now: MonotonicInstant(sinceOrigin: .seconds($0))) }
        for number in 0..<64 { #expect(table.existingCell(of: origin(number)) === cells[number]) }
        for number in 64..<1000 {
            _ = table.cell(of: origin(number), now: MonotonicInstant(sinceOrigin: .seconds(number)))
            #expect(table.count <= 64)
        }
        #expect(table.existingCell(of: origin(0)) == nil)
        #expect(table.existingCell(of: origin(999)) != nil)
    }

    @Test("Idleness is checked when a new origin arrives: a cell that was busy is removed once it is not")
    func busyForAWhile() {
        let opens = MonotonicInstant(sinceOrigin: .seconds(50))
        let table = OriginTable(capacity: 4, isIdle: { _, now in now >= opens }) { _ in Cell() }
        func fill(_ range: Range<Int>) {
            for number in range {
                _ = table.cell(of: origin(number), now: MonotonicInstant(sinceOrigin: .seconds(number)))
            }
        }
        fill(0..<10)
        #expect(table.count == 10)
        fill(50..<100)
        #expect(table.count <= 4)
    }

    @Test(
        "The cost of making room is spread over many new origins, whether the cells are idle or busy",
        arguments: [false, true]
    )
    func cost(isBusy: Bool) {
        let looks = CountWatch()
        let table = OriginTable(
            capacity: 64,
            isIdle: { _, _ in
                looks.increment()
                return !isBusy
            }
        ) { _ in Cell() }
        for number in 0..<2000 {
            _ = table.cell(of: origin(number), now: MonotonicInstant(sinceOrigin: .seconds(number)))
        }
        #expect(looks.count <= 4 * 2000)
    }

    @Test("The origin in use keeps its place although it is found without a lookup")
    func latest() {
        let table = OriginTable(capacity: 4) { _ in Cell() }
        func cell(_ number: Int, at seconds: Int) -> Cell {
            table.cell(of: origin(number), now: MonotonicInstant(sinceOrigin: .seconds(seconds)))
        }
        let first = cell(0, at: 0)
        for number in 1...3 { _ = cell(number, at: number) }
        _ = cell(0, at: 4)
        #expect(cell(0, at: 100) === first)
        _ = cell(4, at: 101)
        #expect(cell(0, at: 102) === first)
    }
}
